/* Groups of NCCL's stand-in with more messages than two ranks have room for. All operations of a
 * group make progress together, so every group ends. */
#define _GNU_SOURCE
#include "nccl_ranks.h"

enum { kMessages = 100 };

static int32_t value_of(int from, int to, int number) {
    return 1000000 * (from + 1) + 1000 * to + number;
}

static int32_t* device_values(int32_t* values, int count) {
    return on_device(values, (size_t)count * sizeof *values);
}

/* The values of 100 messages from one rank to another. */
static int32_t* device_messages(int from, int to) {
    int32_t values[kMessages];
    for (int i = 0; i < kMessages; ++i)
        values[i] = value_of(from, to, i);
    return device_values(values, kMessages);
}

static void check_messages(const int32_t* memory, int from, int to, const char* what) {
    int32_t got[kMessages] = {0};
    cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost);
    int right = 0;
    for (int i = 0; i < kMessages; ++i)
        right += got[i] == value_of(from, to, i);
    check(right == kMessages, what);
}

/* All to all, also to itself, 100 messages each. Every rank has another order: all sends first, all
   receives first, alternating, or by number before peer. */
static void all_to_all(void) {
    Communicator communicator = join();
    int32_t* from[128];
    int32_t* to[128];
    for (int peer = 0; peer < ranks; ++peer) {
        from[peer] = device_messages(rank, peer);
        to[peer] = device_values(NULL, kMessages);
    }
    const int sends_first = rank % 4 == 0;
    const int receives_first = rank % 4 == 1;
    check(ncclGroupStart() == kSuccess, "ncclGroupStart");
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = 0; i < kMessages * ranks; ++i) {
            const int peer = rank % 4 == 3 ? i % ranks : i / kMessages;
            const int number = rank % 4 == 3 ? i / ranks : i % kMessages;
            const int sends = receives_first ? pass == 1 : pass == 0;
            const int both = !sends_first && !receives_first;
            if (both ? pass == 0 : sends)
                ncclSend(from[peer] + number, 1, kInt32, peer, communicator, NULL);
            if (both ? pass == 0 : !sends)
                ncclRecv(to[peer] + number, 1, kInt32, peer, communicator, NULL);
        }
    }
    check(ncclGroupEnd() == kSuccess, "ncclGroupEnd");
    check(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    for (int peer = 0; peer < ranks; ++peer)
        check_messages(to[peer], peer, rank, "100 messages of every rank, in order");
    ncclCommDestroy(communicator);
}

/* Two ranks swap a buffer: each sends what the buffer had before the group. */
static void swap(void) {
    Communicator communicator = join();
    const int peer = 1 - rank;
    int32_t* memory = device_values(&rank, 1);
    for (int i = 0; i < 3; ++i) {
        int32_t got = -1;
        ncclGroupStart();
        ncclRecv(memory, 1, kInt32, peer, communicator, NULL);
        ncclSend(memory, 1, kInt32, peer, communicator, NULL);
        ncclGroupEnd();
        cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost);
        check(got == (i % 2 == 0 ? peer : rank), "a swap in place");
    }
    ncclCommDestroy(communicator);
}

/* Rank 1 reads the many messages of rank 0 only after it has heard from rank 2, which waits for the
   last call of rank 0's group. The messages also have more contents than the shared memory has room
   for. */
static void slow_peer(void) {
    enum { kBytes = 1 << 20, kMany = 40 };

    Communicator communicator = join();
    unsigned char* host = malloc(kBytes);
    unsigned char* memory[2] = {on_device(NULL, kBytes), on_device(NULL, kBytes)};
    if (rank == 0) {
        for (int i = 0; i < 2; ++i) {
            memset(host, 50 + i, kBytes);
            cudaMemcpy(memory[i], host, kBytes, cudaMemcpyHostToDevice);
        }
        ncclGroupStart();
        for (int i = 0; i < kMany; ++i)
            ncclSend(memory[i % 2], kBytes, kUint8, 1, communicator, NULL);
        ncclSend(memory[0], kBytes, kUint8, 2, communicator, NULL);
        check(ncclGroupEnd() == kSuccess, "ncclGroupEnd does not wait for the peers");
        raise_shared(0);
        check(cudaStreamQuery(NULL) == cudaErrorNotReady, "the stream waits for all messages");
    } else if (rank == 1) {
        wait_for_shared(0, 1);
        ncclRecv(memory[0], kBytes, kUint8, 2, communicator, NULL);
        cudaDeviceSynchronize();
        for (int i = 0; i < kMany; ++i) {
            ncclRecv(memory[0], kBytes, kUint8, 0, communicator, NULL);
            cudaMemcpy(host, memory[0], kBytes, cudaMemcpyDeviceToHost);
            check(host[0] == 50 + i % 2 && host[kBytes - 1] == 50 + i % 2, "contents of 1 MiB");
        }
    } else {
        ncclRecv(memory[0], kBytes, kUint8, 0, communicator, NULL);
        cudaMemcpy(host, memory[0], kBytes, cudaMemcpyDeviceToHost);
        check(host[0] == 50, "the message to the other peer");
        ncclSend(memory[0], kBytes, kUint8, 1, communicator, NULL);
    }
    cudaDeviceSynchronize();
    ncclCommDestroy(communicator);
}

/* The communicator is destroyed before the peer has asked for anything. */
static void destroyed(void) {
    Communicator communicator = join();
    if (rank == 0) {
        int32_t* from = device_messages(0, 1);
        ncclGroupStart();
        for (int i = 0; i < kMessages; ++i)
            ncclSend(from + i, 1, kInt32, 1, communicator, NULL);
        ncclGroupEnd();
        raise_shared(0);
    } else {
        int32_t* to = device_values(NULL, kMessages);
        wait_for_shared(0, 1);
        pause_ms(50);
        for (int i = 0; i < kMessages; ++i)
            ncclRecv(to + i, 1, kInt32, 0, communicator, NULL);
        check_messages(to, 0, 1, "messages of a communicator that is destroyed meanwhile");
    }
    check(ncclCommDestroy(communicator) == kSuccess, "ncclCommDestroy");
}

/* Collectives and messages of two communicators, in one group: more than a rank can be ahead. */
static void two_communicators(void) {
    Communicator first = join();
    Communicator second = NULL;
    ncclCommSplit(first, 0, -rank, &second, NULL); /* the ranks in reverse */
    int32_t one = 1;
    int32_t* sum = device_values(&one, 1);
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    int32_t* from = device_messages(rank, next);
    int32_t* to = device_values(NULL, kMessages);
    int32_t* back_from = device_messages(rank, before);
    int32_t* back = device_values(NULL, kMessages);
    int32_t* sums = device_values(NULL, 300);
    cudaStream_t stream = NULL;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    ncclGroupStart();
    for (int i = 0; i < 300; ++i)
        ncclAllReduce(sum, sums + i, 1, kInt32, kSum, first, stream);
    ncclGroupStart();
    for (int i = 0; i < kMessages; ++i) {
        ncclSend(from + i, 1, kInt32, next, first, NULL);
        ncclSend(back_from + i, 1, kInt32, ranks - 1 - before, second, stream);
    }
    check(ncclGroupEnd() == kSuccess, "the end of an inner group");
    for (int i = 0; i < kMessages; ++i) {
        ncclRecv(back + i, 1, kInt32, ranks - 1 - next, second, stream);
        ncclRecv(to + i, 1, kInt32, before, first, NULL);
    }
    check(ncclGroupEnd() == kSuccess, "the end of the outer group");
    cudaDeviceSynchronize();
    check_messages(to, before, rank, "messages of the first communicator");
    check_messages(back, next, rank, "messages of the second communicator");
    int32_t got[300];
    cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost);
    check(got[0] == ranks && got[299] == ranks, "sums");
    ncclCommDestroy(second);
    ncclCommDestroy(first);
}

/* Rank 1 is killed while the group of rank 0 waits for it. */
static void killed(void) {
    Communicator communicator = join();
    if (rank == 1) {
        wait_for_shared(0, 1);
        raise(SIGKILL);
    }
    int32_t* memory = device_values(NULL, 2 * kMessages);
    ncclGroupStart();
    for (int i = 0; i < kMessages; ++i) {
        ncclSend(memory + i, 1, kInt32, 1, communicator, NULL);
        ncclRecv(memory + kMessages + i, 1, kInt32, 1, communicator, NULL);
    }
    check(ncclGroupEnd() == kSuccess, "ncclGroupEnd before the kill");
    raise_shared(0);
    check(cudaDeviceSynchronize() == cudaSuccess, "the wait for a killed rank ends");
    int error = kSuccess;
    ncclCommGetAsyncError(communicator, &error);
    check(error == kRemoteError, "a killed rank is an asynchronous error");
    ncclGroupStart();
    check(ncclSend(memory, 1, kInt32, 1, communicator, NULL) == kSuccess, "a call in a group");
    check(ncclGroupEnd() == kRemoteError, "the end of the group has the error");
    ncclCommDestroy(communicator);
}

static void aborted(void) {
    Communicator communicator = join();
    if (rank == 0) {
        int32_t* memory = device_values(NULL, kMessages);
        pthread_t thread;
        ncclGroupStart();
        for (int i = 0; i < kMessages; ++i)
            ncclSend(memory + i, 1, kInt32, 1, communicator, NULL);
        check(ncclGroupEnd() == kSuccess, "a group that nobody answers");
        pthread_create(&thread, NULL, abort_later, communicator);
        /* Waits until the first group has posted, which it never does. */
        check(ncclSend(memory, 1, kInt32, 1, communicator, NULL) != kSuccess,
              "an abort ends a call that waits");
        check(cudaDeviceSynchronize() == cudaSuccess, "an abort ends the wait");
        pthread_join(thread, NULL);
        ncclGroupStart();
        check(ncclSend(memory, 1, kInt32, 1, communicator, NULL) == kInvalidArgument,
              "a call after the abort");
        check(ncclGroupEnd() == kInvalidArgument, "a group after the abort");
        raise_shared(0);
    } else {
        wait_for_shared(0, 1);
        ncclCommDestroy(communicator);
    }
}

/* A wrong call makes its group do nothing. */
static void wrong_call(void) {
    Communicator communicator = join();
    int32_t* memory = device_values(&rank, 1);
    ncclGroupStart();
    check(ncclSend(memory, 1, kInt32, 0, communicator, NULL) == kSuccess, "a right call");
    check(ncclSend(memory, 1, kInt32, ranks, communicator, NULL) == kInvalidArgument,
          "a peer that does not exist");
    check(ncclGroupEnd() == kInvalidArgument, "the end of the group has the error");
    check(cudaStreamQuery(NULL) == cudaSuccess, "nothing of the group was issued");
    check(ncclGroupStart() == kSuccess && ncclGroupEnd() == kSuccess, "an empty group");
    ncclCommDestroy(communicator);
    Communicator gone = join();
    ncclGroupStart();
    ncclSend(memory, 1, kInt32, 0, gone, NULL);
    ncclCommDestroy(gone);
    check(ncclGroupEnd() == kInvalidArgument, "a communicator that is destroyed within the group");
    check(ncclGroupEnd() == kInvalidUsage, "an end without a start");
}

/* All ranks in one thread. The default stream is that of the device that was current at the call.
 */
static void one_process(void) {
    Communicator communicators[8];
    int32_t* from[8];
    int32_t* to[8];
    check(ncclCommInitAll(communicators, ranks, NULL) == kSuccess, "ncclCommInitAll");
    ncclGroupStart();
    for (int at = 0; at < ranks; ++at) {
        cudaSetDevice(at);
        from[at] = device_messages(at, (at + 1) % ranks);
        to[at] = device_values(NULL, kMessages);
        for (int i = 0; i < kMessages; ++i)
            ncclSend(from[at] + i, 1, kInt32, (at + 1) % ranks, communicators[at], NULL);
        for (int i = 0; i < kMessages && at != 0; ++i)
            ncclRecv(to[at] + i, 1, kInt32, at - 1, communicators[at], NULL);
    }
    ncclGroupEnd();
    for (int at = 0; at < ranks; ++at) {
        cudaSetDevice(at);
        /* The messages of the last rank to the first one are not asked for yet. */
        if (at != ranks - 1) cudaDeviceSynchronize();
        check(cudaStreamQuery(NULL) == (at == ranks - 1 ? cudaErrorNotReady : cudaSuccess),
              "the streams of a group");
    }
    ncclGroupStart();
    for (int i = 0; i < kMessages; ++i)
        ncclRecv(to[0] + i, 1, kInt32, ranks - 1, communicators[0], NULL);
    ncclGroupEnd();
    for (int at = 0; at < ranks; ++at) {
        cudaSetDevice(at);
        check_messages(to[at], (at + ranks - 1) % ranks, at, "messages in one process");
        ncclCommDestroy(communicators[at]);
    }
}

static const Trial kTrials[] = {
    {"all_to_all", all_to_all, kNone},
    {"swap", swap, kNone},
    {"slow_peer", slow_peer, kNone},
    {"destroyed", destroyed, kNone},
    {"two_communicators", two_communicators, kNone},
    {"killed", killed, 1},
    {"aborted", aborted, kNone},
    {"wrong_call", wrong_call, kNone},
    {"one_process", one_process, kOneProcess},
};

int main(int argc, char** argv) {
    return run_trial(argc, argv, kTrials, sizeof kTrials / sizeof kTrials[0]);
}
