/* One thread allocates and frees, and queries free memory between these calls. Another thread
 * queries it during the calls. Then code is loaded. For watched_driver.c. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

enum { kRounds = 20 };

static int (*get_info)(size_t*, size_t*);
static int (*in_progress)(void);
static int g_done;

static void look(void) {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(get_info(&free_bytes, &total_bytes) == 0);
}

static void* watch(void* unused) {
    while (!__atomic_load_n(&g_done, __ATOMIC_ACQUIRE)) {
        if (in_progress()) {
            look();
        }
        sched_yield();
    }
    return unused;
}

int main(void) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CHECK(driver != NULL);
    int (*allocate)(uint64_t*, size_t) = (int (*)(uint64_t*, size_t))dlsym(driver, "cuMemAlloc_v2");
    int (*end)(uint64_t) = (int (*)(uint64_t))dlsym(driver, "cuMemFree_v2");
    get_info = (int (*)(size_t*, size_t*))dlsym(driver, "cuMemGetInfo_v2");
    in_progress = (int (*)(void))dlsym(driver, "watched_in_progress");
    CHECK(allocate != NULL && end != NULL && get_info != NULL && in_progress != NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, watch, NULL) == 0);
    for (int round = 0; round < kRounds; ++round) {
        uint64_t address = 0;
        CHECK(allocate(&address, (size_t)4 << 20) == 0);
        look();
        CHECK(end(address) == 0);
        look();
    }
    __atomic_store_n(&g_done, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
    int (*load)(void**, const void*) =
        (int (*)(void**, const void*))dlsym(driver, "cuModuleLoadData");
    CHECK(load != NULL);
    for (long taken_bytes = 1 << 20; taken_bytes >= -(1 << 20); taken_bytes -= 2 << 20) {
        void* module = NULL;
        CHECK(load(&module, &taken_bytes) == 0);
    }
    return 0;
}
