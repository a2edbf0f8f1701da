/* What the clients of NCCL's stand-in share: its functions, and ranks that are processes. Every
 * rank is a child. A trial is chosen by the first argument; the second gives the number of ranks.
 * The exit status is the number of failed checks of all ranks, or 99 if a rank ended in an
 * unexpected way. */
#ifndef FRAGTRACE_NCCL_RANKS_H
#define FRAGTRACE_NCCL_RANKS_H
#include <cuda_runtime_api.h>

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    char bytes[128];
} UniqueId;

typedef void* Communicator;

enum { kInt8, kUint8, kInt32, kUint32, kInt64, kUint64, kHalf, kFloat, kDouble, kBfloat16 };

enum { kSum, kProd, kMax, kMin, kAvg };

enum { kSuccess = 0, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6 };

int ncclGetUniqueId(UniqueId* id);
int ncclCommInitRank(Communicator* out, int ranks, UniqueId id, int rank);
int ncclCommInitAll(Communicator* out, int ranks, const int* devices);
int ncclCommSplit(Communicator from, int colour, int key, Communicator* out, void* config);
int ncclCommShrink(
    Communicator from, int* excluded, int count, Communicator* out, void* config, int flags);
int ncclCommFinalize(Communicator communicator);
int ncclCommDestroy(Communicator communicator);
int ncclCommAbort(Communicator communicator);
int ncclCommGetAsyncError(Communicator communicator, int* error);
const char* ncclGetLastError(Communicator communicator);
int ncclCommCount(Communicator communicator, int* count);
int ncclCommUserRank(Communicator communicator, int* rank);
int ncclMemAlloc(void** out, size_t bytes);
int ncclMemFree(void* memory);
int ncclCommRegister(Communicator communicator, void* buffer, size_t bytes, void** handle);
int ncclCommDeregister(Communicator communicator, void* handle);
int ncclCommWindowRegister(
    Communicator communicator, void* buffer, size_t bytes, void** window, int flags);
int ncclCommWindowDeregister(Communicator communicator, void* window);
int ncclWinGetUserPtr(Communicator communicator, void* window, void** out);
int ncclRedOpCreatePreMulSum(
    int* op, void* factor, int type, int on_host, Communicator communicator);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
int ncclReduce(const void*, void*, size_t, int, int, int, Communicator, cudaStream_t);
int ncclReduceScatter(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
int ncclBroadcast(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
int ncclAllGather(const void*, void*, size_t, int, Communicator, cudaStream_t);
int ncclAlltoAll(const void*, void*, size_t, int, Communicator, cudaStream_t);
int ncclGather(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
int ncclScatter(const void*, void*, size_t, int, int, Communicator, cudaStream_t);
int ncclSend(const void*, size_t, int, int, Communicator, cudaStream_t);
int ncclRecv(void*, size_t, int, int, Communicator, cudaStream_t);

static int failures;
static int ranks;
static int rank;
static UniqueId id;
static volatile int* shared; /* of all ranks, zero at first */

static void check(int holds, const char* what) {
    if (holds) return;
    printf("FAILED: rank %d: %s\n", rank, what);
    fflush(stdout);
    ++failures;
}

static void pause_ms(int milliseconds) {
    usleep((useconds_t)milliseconds * 1000);
}

static void wait_for_shared(int index, int value) {
    while (__atomic_load_n(&shared[index], __ATOMIC_ACQUIRE) < value)
        pause_ms(1);
}

static void raise_shared(int index) {
    __atomic_add_fetch(&shared[index], 1, __ATOMIC_ACQ_REL);
}

static void* on_device(const void* values, size_t bytes) {
    void* memory = NULL;
    check(cudaMalloc(&memory, bytes) == cudaSuccess, "cudaMalloc");
    if (values != NULL) cudaMemcpy(memory, values, bytes, cudaMemcpyHostToDevice);
    return memory;
}

static Communicator join(void) {
    Communicator communicator = NULL;
    check(ncclCommInitRank(&communicator, ranks, id, rank) == kSuccess, "ncclCommInitRank");
    int count = 0;
    int user_rank = -1;
    check(ncclCommCount(communicator, &count) == kSuccess && count == ranks, "count");
    check(ncclCommUserRank(communicator, &user_rank) == kSuccess && user_rank == rank, "rank");
    return communicator;
}

typedef struct {
    const char* name;
    void (*run)(void);
    int killed; /* the rank that ends by a signal; kNone; or kOneProcess: all ranks are in one */
} Trial;

enum { kNone = -1, kOneProcess = -2 };

/* A thread that aborts a communicator while another thread waits. */
static inline void* abort_later(void* communicator) {
    pause_ms(50);
    ncclCommAbort(communicator);
    return NULL;
}

static int run_ranks(void (*run)(void), int killed) {
    pid_t children[128];
    for (rank = 0; rank < ranks; ++rank) {
        children[rank] = fork();
        if (children[rank] != 0) continue;
        cudaSetDevice(rank);
        run();
        fflush(stdout);
        _exit(failures < 90 ? failures : 90);
    }
    int failed = 0;
    for (int i = 0; i < ranks; ++i) {
        int status = 0;
        waitpid(children[i], &status, 0);
        if (WIFEXITED(status)) {
            failed += WEXITSTATUS(status);
        } else if (i != killed) {
            printf("FAILED: rank %d ended by signal %d\n", i, WTERMSIG(status));
            return 99;
        }
    }
    return failed < 99 ? failed : 98;
}

static int run_trial(int argc, char** argv, const Trial* trials, size_t count) {
    if (argc != 3) return 97;
    ranks = atoi(argv[2]);
    if (ranks < 1 || ranks > 128) return 97;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(ncclGetUniqueId(&id) == kSuccess, "ncclGetUniqueId");
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(argv[1], trials[i].name) != 0) continue;
        if (trials[i].killed != kOneProcess) return run_ranks(trials[i].run, trials[i].killed);
        trials[i].run();
        return failures;
    }
    return 97;
}

#endif
