/* 64 threads make their first CUDA call at the same moment, and then make more calls. */
#include "client.h"

#include <pthread.h>

enum { kThreads = 64, kRounds = 200 };

static pthread_barrier_t g_barrier;

static void* work(void* argument) {
    (void)argument;
    pthread_barrier_wait(&g_barrier);
    device_work(kRounds);
    return NULL;
}

int main(void) {
    pthread_t threads[kThreads];
    CHECK(pthread_barrier_init(&g_barrier, NULL, kThreads) == 0);
    for (int i = 0; i < kThreads; ++i)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < kThreads; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    puts("done");
    return 0;
}
