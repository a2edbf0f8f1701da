/* A driver whose allocations and frees last until another thread has queried the free memory. */
#include <sched.h>
#include <stddef.h>

typedef unsigned long long address_t;

enum { kBytes = 4 << 20, kTotal = 1 << 30 };

static size_t used;
static int looks;
static int in_progress;

static void wait_for_a_look(void) {
    const int before = __atomic_load_n(&looks, __ATOMIC_ACQUIRE);
    __atomic_store_n(&in_progress, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&looks, __ATOMIC_ACQUIRE) < before + 2) {
        sched_yield();
    }
    __atomic_store_n(&in_progress, 0, __ATOMIC_RELEASE);
}

int cuInit(unsigned flags) {
    return (int)flags;
}

int cuCtxGetDevice(int* device) {
    return *device = 0;
}

int cuDeviceGetCount(int* count) {
    return *count = 1, 0;
}

int cuMemAlloc_v2(address_t* address, size_t bytes) {
    *address = 0x500000000ull;
    __atomic_fetch_add(&used, bytes, __ATOMIC_ACQ_REL);
    wait_for_a_look();
    return 0;
}

int cuMemFree_v2(address_t address) {
    (void)address;
    wait_for_a_look();
    __atomic_fetch_sub(&used, kBytes, __ATOMIC_ACQ_REL);
    return 0;
}

int cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    *total_bytes = kTotal;
    *free_bytes = kTotal - __atomic_load_n(&used, __ATOMIC_ACQUIRE);
    __atomic_fetch_add(&looks, 1, __ATOMIC_ACQ_REL);
    return 0;
}

/* Loads code: the value of the image is added to the used bytes. It is negative if other processes
 * free memory meanwhile. */
int cuModuleLoadData(void** module, const void* image) {
    *module = &used;
    __atomic_fetch_add(&used, *(const long*)image, __ATOMIC_ACQ_REL);
    return 0;
}

/* For the client, which queries free memory while this is 1. */
int watched_in_progress(void) {
    return __atomic_load_n(&in_progress, __ATOMIC_ACQUIRE);
}
