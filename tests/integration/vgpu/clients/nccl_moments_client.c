/* Ranks of NCCL's stand-in that call, or end, in the worst moment for their peers. */
#define _GNU_SOURCE
#include "nccl_ranks.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* The stand-in asks for the time between its looks at the peers. A slow clock makes the time
 * between two looks long enough for a peer to do several things. */
static volatile int slow_clock;

int clock_gettime(clockid_t clock, struct timespec* now) {
    const struct timespec moment = {0, 20000000};
    if (slow_clock) syscall(SYS_nanosleep, &moment, NULL);
    return (int)syscall(SYS_clock_gettime, clock, now);
}

static int32_t value_of(const int32_t* memory) {
    int32_t value = -1;
    cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}

/* Rank 1 broadcasts and splits while rank 0 already waits for the split. It broadcasts again when
 * the split is done. Rank 0 must have read the first broadcast by then. */
static void split_at_once(void) {
    Communicator communicator = join();
    int32_t* from = on_device(NULL, 4);
    int32_t* first = on_device(NULL, 4);
    int32_t* second = on_device(NULL, 4);
    for (int32_t round = 0; round < 12; ++round) {
        int32_t sent = 100 + round;
        cudaMemcpy(from, &sent, 4, cudaMemcpyHostToDevice);
        if (rank == 1) pause_ms(100 + 7 * round); /* a look of rank 0 takes 80 ms */
        ncclBroadcast(from, first, 1, kInt32, 1, communicator, NULL);
        Communicator part = NULL;
        slow_clock = rank == 0;
        check(ncclCommSplit(communicator, rank == 0 ? -1 : 0, 0, &part, NULL) == kSuccess, "split");
        slow_clock = 0;
        sent = 200 + round;
        cudaMemcpy(from, &sent, 4, cudaMemcpyHostToDevice);
        pause_ms(rank == 0 ? 100 : 40);
        ncclBroadcast(from, second, 1, kInt32, 1, communicator, NULL);
        cudaDeviceSynchronize();
        check(value_of(first) == 100 + round, "the broadcast before the split");
        check(value_of(second) == 200 + round, "the broadcast after the split");
        if (part != NULL) ncclCommDestroy(part);
    }
    ncclCommDestroy(communicator);
}

/* The end of a communicator waits for its calls, so no other wait is needed for their results. */
static void end_early(int finalizes) {
    Communicator communicator = join();
    const int32_t mine = rank + 1;
    int32_t* sum = on_device(&mine, 4);
    if (rank == 1) pause_ms(100);
    ncclAllReduce(sum, sum, 1, kInt32, kSum, communicator, NULL);
    if (finalizes) {
        check(ncclCommFinalize(communicator) == kSuccess, "ncclCommFinalize");
        check(cudaStreamQuery(NULL) == cudaSuccess, "the stream is ready");
    }
    check(ncclCommDestroy(communicator) == kSuccess, "ncclCommDestroy");
    check(value_of(sum) == ranks * (ranks + 1) / 2, "a sum after the end of its communicator");
}

static void finalized_early(void) {
    end_early(1);
}

static void destroyed_early(void) {
    end_early(0);
}

/* Rank 1 never calls, and rank 0 waits for as long as the environment says. */
static void never_called(void) {
    Communicator communicator = join();
    if (rank == 0) {
        int32_t* sum = on_device(&rank, 4);
        ncclAllReduce(sum, sum, 1, kInt32, kSum, communicator, NULL);
        check(ncclCommFinalize(communicator) == kSystemError, "the wait has a limit");
        check(ncclCommAbort(communicator) == kSuccess, "abort");
        raise_shared(0);
    } else {
        wait_for_shared(0, 1);
        ncclCommDestroy(communicator);
    }
    check(ncclCommFinalize(communicator) == kInvalidArgument, "no communicator any more");
    check(ncclCommFinalize(NULL) == kSuccess, "none");
}

/* The places of the ranks in the segment of the unique id: 64 bytes each, after 64 others. Null if
 * rank 0 no longer waits there. */
static const volatile unsigned char* ranks_of_segment(void) {
    char path[192];
    snprintf(path, sizeof path, "/dev/shm/fragtrace-nccl-%s", id.bytes + 16);
    while (!shared[2]) {
        struct stat status;
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0 && fstat(file, &status) == 0 && status.st_size >= 4096) {
            return (const unsigned char*)mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) + 64;
        }
        if (file >= 0) close(file);
        pause_ms(1);
    }
    return NULL;
}

static int has_joined(const volatile unsigned char* all, int of) {
    for (int i = 0; i < 64; ++i) {
        if (all[64 * of + i] != 0) return 1;
    }
    return 0;
}

/* A stopped child that joins as rank 1 when it goes on, or 0 if processes cannot be traced here. */
static pid_t traced_joiner(void) {
    const pid_t child = fork();
    if (child == 0) {
        Communicator communicator = NULL;
        cudaFree(NULL);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(1);
        raise(SIGSTOP);
        ncclCommInitRank(&communicator, ranks, id, rank);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSTOPPED(status) ? child : 0;
}

/* Rank 1 is killed after the first instruction that writes to its place in the segment. */
static void killed_while_joining(void) {
    Communicator communicator = NULL;
    if (rank == 0) {
        wait_for_shared(0, 1);
        if (shared[1]) return;
        check(ncclCommInitRank(&communicator, ranks, id, rank) == kRemoteError,
              "a rank that was killed while it joined");
        raise_shared(2);
        return;
    }
    const pid_t child = traced_joiner();
    if (child == 0) {
        printf("skipped: processes cannot be traced here\n");
        raise_shared(1);
    }
    raise_shared(0);
    if (child == 0) return;
    const volatile unsigned char* all = ranks_of_segment();
    while (all != NULL && !has_joined(all, 0) && !shared[2])
        pause_ms(1);
    int status = 0;
    while (all != NULL && !has_joined(all, 1) &&
           ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 &&
           waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    }
    check(all != NULL && has_joined(all, 1) && WIFSTOPPED(status), "the child has begun to join");
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static const Trial kTrials[] = {
    {"split_at_once", split_at_once, kNone},
    {"finalized_early", finalized_early, kNone},
    {"destroyed_early", destroyed_early, kNone},
    {"never_called", never_called, kNone},
    {"killed_while_joining", killed_while_joining, kNone},
};

int main(int argc, char** argv) {
    return run_trial(argc, argv, kTrials, sizeof kTrials / sizeof kTrials[0]);
}
