/* Ranks of NCCL's stand-in: collectives, messages, splits, errors, memory. */
#define _GNU_SOURCE
#include "nccl_ranks.h"

/* The sum of the ranks' numbers plus one. */
static int64_t triangle(int of) {
    return (int64_t)of * (of + 1) / 2;
}

static int64_t reduced(Communicator communicator, int64_t mine, int operation) {
    int64_t* memory = on_device(&mine, sizeof mine);
    int64_t result = -1;
    check(ncclAllReduce(memory, memory, 1, kInt64, operation, communicator, NULL) == kSuccess,
          "ncclAllReduce");
    cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost);
    cudaFree(memory);
    return result;
}

/* Values per type: the bits of 1.5 + rank and of what two ranks make of them. */
static void reductions(Communicator communicator) {
    check(reduced(communicator, rank + 1, kSum) == triangle(ranks), "sum");
    check(reduced(communicator, rank == 0 ? -7 : rank, kMin) == -7, "min");
    check(reduced(communicator, rank, kMax) == ranks - 1, "max");
    check(reduced(communicator, 2, kProd) == (int64_t)1 << ranks, "prod");
    check(reduced(communicator, 10 * (rank + 1), kAvg) == 10 * triangle(ranks) / ranks, "avg");

    struct {
        int type;
        size_t bytes;
        uint64_t mine;
        uint64_t theirs;
        uint64_t sum;
    } rows[] = {
        {kUint8, 1, 200, 100, 44},
        {kInt32, 4, 0xfffffffe, 5, 3},
        {kHalf, 2, 0x3e00, 0x4100, 0x4400},     /* 1.5 + 2.5 = 4 */
        {kBfloat16, 2, 0x3fc0, 0x4020, 0x4080}, /* 1.5 + 2.5 = 4 */
        {kHalf, 2, 0x7bff, 0x7bff, 0x7c00},     /* 65504 twice: infinity */
        {kHalf, 2, 0x0001, 0x0002, 0x0003},     /* subnormal */
        {kFloat, 4, 0x3fc00000, 0x40200000, 0x40800000},
        {kDouble, 8, 0x3ff8000000000000, 0x4004000000000000, 0x4010000000000000},
    };

    if (ranks != 2) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const uint64_t mine = rank == 0 ? rows[i].mine : rows[i].theirs;
        void* memory = on_device(&mine, sizeof mine);
        uint64_t result = 0;
        check(ncclAllReduce(memory, memory, 1, rows[i].type, kSum, communicator, NULL) == kSuccess,
              "ncclAllReduce of a type");
        cudaMemcpy(&result, memory, rows[i].bytes, cudaMemcpyDeviceToHost);
        if (result != rows[i].sum)
            printf("type %d: %llx\n", rows[i].type, (unsigned long long)result);
        check(result == rows[i].sum, "sum of a type");
        cudaFree(memory);
    }
    float half = 0.5F;
    float value = 3;
    int operation = 0;
    ncclRedOpCreatePreMulSum(&operation, &half, kFloat, 1, communicator);
    float* memory = on_device(&value, sizeof value);
    ncclAllReduce(memory, memory, 1, kFloat, operation, communicator, NULL);
    cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost);
    check(value == 3, "premultiplied sum");
}

static void values(void) {
    Communicator communicator = join();
    reductions(communicator);
    int32_t* mine = calloc((size_t)ranks, 4);
    int32_t* got = calloc((size_t)ranks, 4);
    const size_t all = (size_t)ranks * 4;
    for (int i = 0; i < ranks; ++i)
        mine[i] = 100 * rank + i;
    void* from = on_device(mine, all);
    void* to = on_device(NULL, all);

    check(ncclAllGather(from, to, 1, kInt32, communicator, NULL) == kSuccess, "ncclAllGather");
    cudaMemcpy(got, to, all, cudaMemcpyDeviceToHost);
    for (int i = 0; i < ranks; ++i)
        check(got[i] == 100 * i, "all-gather brings every rank's value");

    check(ncclAlltoAll(from, to, 1, kInt32, communicator, NULL) == kSuccess, "ncclAlltoAll");
    cudaMemcpy(got, to, all, cudaMemcpyDeviceToHost);
    for (int i = 0; i < ranks; ++i)
        check(got[i] == 100 * i + rank, "all-to-all brings each rank's value for this one");

    const int root = ranks - 1;
    ncclGather(from, to, 1, kInt32, root, communicator, NULL);
    cudaMemcpy(got, to, all, cudaMemcpyDeviceToHost);
    for (int i = 0; i < ranks && rank == root; ++i)
        check(got[i] == 100 * i, "gather");

    ncclScatter(from, to, 1, kInt32, root, communicator, NULL);
    cudaMemcpy(got, to, 4, cudaMemcpyDeviceToHost);
    check(got[0] == 100 * root + rank, "scatter");

    ncclBroadcast(from, to, (size_t)ranks, kInt32, root, communicator, NULL);
    cudaMemcpy(got, to, all, cudaMemcpyDeviceToHost);
    check(got[0] == 100 * root && got[ranks - 1] == 100 * root + ranks - 1, "broadcast");

    ncclReduceScatter(from, to, 1, kInt32, kSum, communicator, NULL);
    cudaMemcpy(got, to, 4, cudaMemcpyDeviceToHost);
    check(got[0] == (int)(100 * (triangle(ranks) - ranks)) + ranks * rank, "reduce-scatter");

    ncclReduce(from, to, 1, kInt32, kMax, 0, communicator, NULL);
    cudaMemcpy(got, to, 4, cudaMemcpyDeviceToHost);
    check(rank != 0 || got[0] == 100 * root, "reduce");

    /* A copy on the device takes a result with it that has not come yet. */
    void* copy = on_device(NULL, all);
    cudaStream_t side = NULL;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    ncclAllGather(from, to, 1, kInt32, communicator, side);
    cudaMemcpyAsync(copy, to, all, cudaMemcpyDeviceToDevice, side);
    cudaMemcpyAsync(got, copy, all, cudaMemcpyDeviceToHost, side);
    cudaStreamSynchronize(side);
    check(got[ranks - 1] == 100 * root, "a copy of a pending result");

    /* More collectives than a rank can be ahead, and more contents than the segment has room for.
     */
    const size_t large = 300 << 10;
    unsigned char* block = malloc(large);
    void* large_from = on_device(NULL, large);
    for (int i = 0; i < 600; ++i) {
        memset(block, i, large);
        if (i % 10 == 0) cudaMemcpyAsync(large_from, block, large, cudaMemcpyHostToDevice, side);
        ncclBroadcast(large_from, large_from, large, kUint8, 0, communicator, side);
    }
    cudaMemcpyAsync(block, large_from, large, cudaMemcpyDeviceToHost, side);
    cudaStreamSynchronize(side);
    check(block[0] == (590 & 255) && block[large - 1] == (590 & 255), "many collectives");

    /* 1 MiB is kept, more is not. */
    void* big = on_device(NULL, (1 << 20) + 1);
    unsigned char* host = calloc(1, (1 << 20) + 1);
    memset(host, 7, (1 << 20) + 1);
    cudaMemcpy(big, host, 1 << 20, cudaMemcpyHostToDevice);
    ncclBroadcast(big, big, 1 << 20, kUint8, 0, communicator, NULL);
    memset(host, 0, 1 << 20);
    cudaMemcpy(host, big, 1 << 20, cudaMemcpyDeviceToHost);
    check(host[0] == 7 && host[(1 << 20) - 1] == 7, "1 MiB");
    memset(host, 7, (1 << 20) + 1);
    cudaMemcpy(big, host, (1 << 20) + 1, cudaMemcpyHostToDevice);
    ncclBroadcast(big, big, (1 << 20) + 1, kUint8, 0, communicator, NULL);
    cudaMemcpy(host, big, (1 << 20) + 1, cudaMemcpyDeviceToHost);
    check(host[0] == 0, "more than 1 MiB are zeros");
    check(ncclCommDestroy(communicator) == kSuccess, "ncclCommDestroy");
}

/* A ring, grouped; then messages that are sent long before they are asked for. */
static void messages(void) {
    Communicator communicator = join();
    const int next = (rank + 1) % ranks;
    const int before = (rank + ranks - 1) % ranks;
    int32_t got = 0;
    void* from = on_device(&rank, 4);
    void* to = on_device(NULL, 4);
    ncclGroupStart();
    ncclSend(from, 1, kInt32, next, communicator, NULL);
    ncclRecv(to, 1, kInt32, before, communicator, NULL);
    ncclGroupEnd();
    cudaMemcpy(&got, to, 4, cudaMemcpyDeviceToHost);
    check(got == before, "a ring");
    cudaStream_t stream = NULL;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (rank == 0) {
        for (int i = 0; i < 20; ++i) {
            const int32_t value = 1000 + i;
            cudaMemcpy(from, &value, 4, cudaMemcpyHostToDevice);
            ncclSend(from, 1, kInt32, 1, communicator, stream);
        }
        check(cudaStreamQuery(stream) == cudaErrorNotReady, "a send waits for its receive");
        raise_shared(0);
        cudaStreamSynchronize(stream);
    }
    if (rank == 1) {
        wait_for_shared(0, 1);
        for (int i = 0; i < 20; ++i) {
            ncclRecv(to, 1, kInt32, 0, communicator, stream);
            cudaMemcpyAsync(&got, to, 4, cudaMemcpyDeviceToHost, stream);
            cudaStreamSynchronize(stream);
            check(got == 1000 + i, "messages come in order");
        }
    }
    ncclCommDestroy(communicator);
}

static void waits(void) {
    Communicator communicator = join();
    cudaStream_t stream = NULL;
    cudaStream_t other = NULL;
    cudaEvent_t event = NULL;
    cudaEvent_t earlier = NULL;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    cudaEventCreate(&earlier);
    void* memory = on_device(&rank, 4);
    if (rank != 0) wait_for_shared(0, 1);
    cudaEventRecord(earlier, stream);
    ncclAllReduce(memory, memory, 1, kInt32, kSum, communicator, stream);
    cudaEventRecord(event, stream);
    if (rank == 0) {
        check(cudaStreamQuery(stream) == cudaErrorNotReady, "the stream waits");
        check(cudaEventQuery(event) == cudaErrorNotReady, "the event waits");
        check(cudaEventQuery(earlier) == cudaSuccess, "an earlier event does not wait");
        check(cudaStreamQuery(other) == cudaSuccess, "another stream does not wait");
        cudaStreamWaitEvent(other, event, 0);
        check(cudaStreamQuery(other) == cudaErrorNotReady,
              "a stream that waits for the event waits");
        raise_shared(0);
    }
    check(cudaEventSynchronize(event) == cudaSuccess, "cudaEventSynchronize");
    check(cudaEventQuery(event) == cudaSuccess, "the event is ready");
    check(cudaStreamSynchronize(other) == cudaSuccess, "cudaStreamSynchronize");
    check(cudaStreamQuery(other) == cudaSuccess, "the other stream is ready");
    check(cudaDeviceSynchronize() == cudaSuccess, "cudaDeviceSynchronize");
    ncclCommDestroy(communicator);
}

/* Two colours, keys in reverse; one rank of none; then collectives in both in different orders. */
static void split(void) {
    Communicator communicator = join();
    Communicator half = NULL;
    const int last = rank == ranks - 1;
    check(ncclCommSplit(communicator, last ? -1 : rank % 2, -rank, &half, NULL) == kSuccess,
          "split");
    check(last == (half == NULL), "a rank without colour gets none");
    int size = 0;
    int place = -1;
    if (!last) {
        ncclCommCount(half, &size);
        ncclCommUserRank(half, &place);
        int members = 0;
        int after = 0;
        for (int i = 0; i < ranks - 1; ++i) {
            members += i % 2 == rank % 2;
            after += i % 2 == rank % 2 && i > rank;
        }
        check(size == members && place == after, "size and rank by colour and key");
        check(reduced(half, 1, kSum) == members, "a sum of one colour");
    }
    check(reduced(communicator, 1, kSum) == ranks, "the old communicator works");
    Communicator same = NULL;
    check(ncclCommSplit(communicator, 0, 0, &same, NULL) == kSuccess, "a second split");
    int32_t one = 1;
    int32_t* first = on_device(&one, 4);
    int32_t* second = on_device(&one, 4);
    cudaStream_t streams[2];
    for (int i = 0; i < 2; ++i)
        cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    for (int i = 0; i < 2; ++i) {
        const int which = (i + rank) % 2;
        ncclAllReduce(which ? first : second,
                      which ? first : second,
                      1,
                      kInt32,
                      kSum,
                      which ? communicator : same,
                      streams[which]);
    }
    cudaMemcpyAsync(&one, second, 4, cudaMemcpyDeviceToHost, streams[0]);
    cudaDeviceSynchronize();
    check(one == ranks, "two communicators in different orders");
    ncclCommDestroy(same);
    if (half != NULL) ncclCommDestroy(half);
    ncclCommDestroy(communicator);
}

/* Rank 0 has posted as many collectives as it may before another rank has begun one. */
static void split_ahead(void) {
    Communicator communicator = join();
    int64_t one = 1;
    int64_t* value = on_device(&one, sizeof one);
    if (rank != 0) pause_ms(500);
    for (int i = 0; i < 256; ++i) {
        check(ncclAllReduce(value, value, 1, kInt64, kMax, communicator, NULL) == kSuccess,
              "ncclAllReduce");
    }
    Communicator same = NULL;
    check(ncclCommSplit(communicator, 0, 0, &same, NULL) == kSuccess, "split");
    cudaDeviceSynchronize();
    int error = -1;
    check(ncclCommGetAsyncError(communicator, &error) == kSuccess && error == kSuccess,
          "no error of the collectives before the split");
    if (same != NULL) ncclCommDestroy(same);
    ncclCommDestroy(communicator);
}

static void shrink(void) {
    Communicator communicator = join();
    int excluded[] = {1};
    if (rank == 1) raise(SIGKILL);
    int error = kSuccess;
    void* memory = on_device(&rank, 4);
    ncclAllReduce(memory, memory, 1, kInt32, kSum, communicator, NULL);
    check(cudaDeviceSynchronize() == cudaSuccess, "the wait for a killed rank ends");
    check(ncclCommGetAsyncError(communicator, &error) == kSuccess && error == kRemoteError,
          "a killed rank is an asynchronous error");
    check(strstr(ncclGetLastError(communicator), "rank 1 has ended") != NULL, "the error's text");
    check(ncclAllReduce(memory, memory, 1, kInt32, kSum, communicator, NULL) == kRemoteError,
          "further calls fail");
    Communicator rest = NULL;
    check(ncclCommShrink(communicator, excluded, 1, &rest, NULL, 1) == kSuccess, "shrink");
    check(ncclCommAbort(communicator) == kSuccess, "abort");
    check(reduced(rest, rank, kSum) == triangle(ranks - 1) - 1, "a sum without the killed rank");
    ncclCommDestroy(rest);
}

static void aborted(void) {
    Communicator communicator = join();
    if (rank == 0) {
        void* memory = on_device(&rank, 4);
        pthread_t thread;
        ncclAllReduce(memory, memory, 1, kInt32, kSum, communicator, NULL);
        pthread_create(&thread, NULL, abort_later, communicator);
        check(cudaDeviceSynchronize() == cudaSuccess, "an abort ends the wait");
        pthread_join(thread, NULL);
        raise_shared(0);
    } else {
        wait_for_shared(0, 1);
        ncclCommDestroy(communicator);
    }
}

static void disagree(void) {
    Communicator communicator = join();
    void* memory = on_device(&rank, 64);
    ncclAllReduce(memory, memory, rank == 0 ? 1 : 2, kInt32, kSum, communicator, NULL);
    cudaDeviceSynchronize();
    int error = kSuccess;
    ncclCommGetAsyncError(communicator, &error);
    check(error == kInvalidUsage || error == kRemoteError, "different calls are an error");
    check(strstr(ncclGetLastError(communicator), "AllReduce of 4 bytes") != NULL ||
              error == kRemoteError,
          "the text names the calls");
    raise_shared(0);
    wait_for_shared(0, ranks);
    ncclCommDestroy(communicator);
}

/* All ranks in this process, in groups. */
static void one_process(void) {
    Communicator communicators[8];
    void* memory[8];
    const int32_t one = 1;
    check(ncclCommInitAll(communicators, ranks, NULL) == kSuccess, "ncclCommInitAll");
    ncclGroupStart();
    for (int i = 0; i < ranks; ++i) {
        cudaSetDevice(i);
        memory[i] = on_device(&one, 4);
        ncclAllReduce(memory[i], memory[i], 1, kInt32, kSum, communicators[i], NULL);
    }
    ncclGroupEnd();
    for (int i = 0; i < ranks; ++i) {
        int32_t sum = 0;
        cudaSetDevice(i);
        cudaMemcpy(&sum, memory[i], 4, cudaMemcpyDeviceToHost);
        check(sum == ranks, "a sum in one process");
        ncclCommDestroy(communicators[i]);
    }
    UniqueId other;
    ncclGetUniqueId(&other);
    check(memcmp(&other, &id, sizeof id) != 0, "two ids differ");
    ncclGroupStart();
    for (int i = 0; i < ranks; ++i) {
        cudaSetDevice(i);
        check(ncclCommInitRank(&communicators[i], ranks, other, i) == kSuccess, "in a group");
    }
    check(ncclGroupEnd() == kSuccess, "a group of ncclCommInitRank");
    for (int i = 0; i < ranks; ++i)
        ncclCommDestroy(communicators[i]);
}

/* Rank 0 waits for a rank that never comes, for as long as the environment says. */
static void missing(void) {
    Communicator communicator = NULL;
    if (rank == 0) {
        check(ncclCommInitRank(&communicator, ranks, id, rank) == kSystemError,
              "a rank is missing");
        check(communicator == NULL, "no communicator");
    }
}

static void many(void) {
    check(cudaSetDevice(rank) == cudaSuccess, "a device per rank");
    Communicator communicator = join();
    check(reduced(communicator, rank + 1, kSum) == triangle(ranks), "a sum of all ranks");
    Communicator eight = NULL;
    ncclCommSplit(communicator, rank / 8, rank, &eight, NULL);
    check(reduced(eight, 1, kSum) == 8, "a sum of eight ranks");
    ncclCommDestroy(eight);
    ncclCommDestroy(communicator);
}

/* The process that made the unique id has ended. */
static void stale(void) {
    int ends[2];
    UniqueId old;
    Communicator communicator = NULL;
    check(pipe(ends) == 0, "pipe");
    const pid_t maker = fork();
    if (maker == 0) {
        ncclGetUniqueId(&old);
        _exit(write(ends[1], &old, sizeof old) == sizeof old ? 0 : 1);
    }
    check(read(ends[0], &old, sizeof old) == sizeof old, "read");
    waitpid(maker, NULL, 0);
    check(ncclCommInitRank(&communicator, ranks + 1, old, rank) == kRemoteError, "a stale id");
}

/* What NCCL takes with nccl=SIZE, and memory of ncclMemAlloc. Prints both, for the recorder's test.
 */
static void memory(void) {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    cudaMemGetInfo(&before, &total);
    Communicator communicator = join();
    cudaMemGetInfo(&after, &total);
    printf("rank %d: %zu bytes\n", rank, before - after);
    void* own = NULL;
    check(ncclMemAlloc(&own, 4 << 20) == kSuccess, "ncclMemAlloc");
    cudaMemGetInfo(&after, &total);
    printf("rank %d: %zu bytes\n", rank, before - after);
    check(ncclMemFree(own) == kSuccess, "ncclMemFree");
    ncclCommDestroy(communicator);
    cudaMemGetInfo(&after, &total);
    check(before == after, "all memory is free again");
}

/* Registration takes no memory and changes no result. */
static void registered(void) {
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    Communicator communicator = join();
    int64_t value = rank + 1;
    int64_t result = -1;
    int64_t* memory = on_device(&value, sizeof value);
    cudaMemGetInfo(&before, &total);
    void* handle = NULL;
    void* window = NULL;
    void* of_window = NULL;
    check(ncclCommRegister(communicator, memory, sizeof value, &handle) == kSuccess && handle,
          "ncclCommRegister");
    check(ncclCommRegister(communicator, memory, sizeof value, NULL) == kInvalidArgument,
          "no place for the handle");
    check(ncclCommRegister(NULL, memory, sizeof value, &handle) == kInvalidArgument,
          "no communicator");
    check(ncclCommWindowRegister(communicator, memory, sizeof value, &window, 0) == kSuccess,
          "ncclCommWindowRegister");
    check(ncclWinGetUserPtr(communicator, window, &of_window) == kSuccess && of_window == memory,
          "the window's buffer");
    cudaMemGetInfo(&after, &total);
    check(before == after, "registration takes no device memory");
    check(ncclAllReduce(memory, memory, 1, kInt64, kSum, communicator, NULL) == kSuccess,
          "ncclAllReduce of a registered buffer");
    cudaMemcpy(&result, memory, sizeof result, cudaMemcpyDeviceToHost);
    check(result == triangle(ranks), "its result");
    check(ncclCommWindowDeregister(communicator, window) == kSuccess, "ncclCommWindowDeregister");
    check(ncclCommDeregister(communicator, handle) == kSuccess, "ncclCommDeregister");
    check(ncclCommDeregister(NULL, handle) == kInvalidArgument, "no communicator to deregister");
    cudaFree(memory);
    ncclCommDestroy(communicator);
}

/* What NCCL takes with nccl=model: for the first collective, for the next one, and for the first
   message between two ranks. The collectives are larger than those that have contents. */
static void connections(void) {
    size_t before = 0;
    size_t total = 0;
    Communicator communicator = join();
    void* large = on_device(NULL, 2 << 20);
    cudaMemGetInfo(&before, &total);
    for (int step = 0; step < 3; ++step) {
        size_t after = 0;
        if (step < 2) {
            check(
                ncclAllReduce(large, large, 1 << 18, kInt64, kSum, communicator, NULL) == kSuccess,
                "ncclAllReduce");
        } else if (rank == 0) {
            check(ncclSend(large, 1, kInt64, 1, communicator, NULL) == kSuccess, "ncclSend");
        } else if (rank == 1) {
            check(ncclRecv(large, 1, kInt64, 0, communicator, NULL) == kSuccess, "ncclRecv");
        }
        cudaDeviceSynchronize();
        cudaMemGetInfo(&after, &total);
        printf("rank %d, step %d: %zu MiB\n", rank, step, (before - after) >> 20);
    }
    ncclCommDestroy(communicator);
    size_t after = 0;
    cudaMemGetInfo(&after, &total);
    check(before == after, "all memory is free again");
}

static const Trial kTrials[] = {
    {"values", values, kNone},
    {"messages", messages, kNone},
    {"waits", waits, kNone},
    {"split", split, kNone},
    {"split_ahead", split_ahead, kNone},
    {"shrink", shrink, 1},
    {"aborted", aborted, kNone},
    {"disagree", disagree, kNone},
    {"one_process", one_process, kOneProcess},
    {"missing", missing, kNone},
    {"stale", stale, kNone},
    {"many", many, kNone},
    {"memory", memory, kNone},
    {"registered", registered, kNone},
    {"connections", connections, kNone},
};

int main(int argc, char** argv) {
    return run_trial(argc, argv, kTrials, sizeof kTrials / sizeof kTrials[0]);
}
