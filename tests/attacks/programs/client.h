/* Shared by the client programs: their CUDA calls, and the log of these calls.
 *
 * CLIENT_LOG names the log file. It is mapped and shared with every child. Writing to it needs no
 * descriptor, no lock and no system call, so it works in signal handlers, in sandboxes and shortly
 * before a kill. test_client.py compares it with the traces. */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
int cudaMalloc(void** address, size_t bytes);
int cudaFree(void* address);
int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
int cudaGetDeviceCount(int* count);
#ifdef __cplusplus
}
#endif

/* test_client.py reads the same layout. */
enum { kLogEntries = 524288, kLogAlloc = 1, kLogFree = 2 };

struct LogEntry {
    uint64_t process;
    uint64_t kind;
    uint64_t address;
    uint64_t bytes;
};

struct Log {
    uint64_t count;
    uint64_t unused[3];
    struct LogEntry entries[kLogEntries];
};

static struct Log* g_log;

static inline void say_and_die(const char* what) {
    fprintf(stderr, "client: %s\n", what);
    _exit(90);
}

#define CHECK(condition)                                       \
    do {                                                       \
        if (!(condition)) {                                    \
            fprintf(stderr,                                    \
                    "client, %s, line %d: %s does not hold\n", \
                    __func__,                                  \
                    __LINE__,                                  \
                    #condition);                               \
            _exit(91);                                         \
        }                                                      \
    } while (0)

/* For programs that will lose the right to open files. Otherwise the first log entry opens it. */
static inline struct Log* open_log(void) {
    struct Log* log = __atomic_load_n(&g_log, __ATOMIC_ACQUIRE);
    if (log != NULL) {
        return log;
    }
    const char* path = getenv("CLIENT_LOG");
    const int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void* memory = fd < 0
                       ? MAP_FAILED
                       : mmap(NULL, sizeof(struct Log), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        say_and_die("CLIENT_LOG names no log");
    }
    close(fd);
    log = (struct Log*)memory;
    __atomic_store_n(&g_log, log, __ATOMIC_RELEASE);
    return log;
}

static inline void log_call(int kind, const void* address, size_t bytes) {
    struct Log* log = open_log();
    const uint64_t number = __atomic_fetch_add(&log->count, 1, __ATOMIC_RELAXED);
    if (number >= kLogEntries) {
        say_and_die("the log is full");
    }
    struct LogEntry* entry = &log->entries[number];
    entry->process = (uint64_t)syscall(SYS_getpid);
    entry->kind = (uint64_t)kind;
    entry->address = (uint64_t)(uintptr_t)address;
    entry->bytes = bytes;
}

static inline void* device_alloc(size_t bytes) {
    void* address = NULL;
    CHECK(cudaMalloc(&address, bytes) == 0);
    log_call(kLogAlloc, address, bytes);
    return address;
}

static inline void device_free(void* address) {
    log_call(kLogFree, address, 0);
    CHECK(cudaFree(address) == 0);
}

/* Some allocations that are freed again, and one that stays. */
static inline void device_work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        device_free(device_alloc(512u * (size_t)(i + 1)));
    }
    device_alloc(4096);
}
