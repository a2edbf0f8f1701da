/* Threads allocate, and the process ends, while the recorder's storage hangs (slow_files.c). No
 * call may take long: most are fast, a few wait for the recorder, which gives up. */
#include "client.h"

#include <pthread.h>
#include <time.h>

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* allocate(void* argument) {
    (void)argument;
    for (int i = 0; i < 2000; ++i) {
        const double begin = now_s();
        device_free(device_alloc(512));
        CHECK(now_s() - begin < 5);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
    }
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    puts("done");
    return 0;
}
