/* Threads make calls until the process is killed or the log is full. Each allocation is logged
 * after its call has returned, each free before its call. So a trace must have everything in the
 * log. */
#include "client.h"

#include <pthread.h>

enum { kThreads = 4, kCallsOfThread = kLogEntries / kThreads - 8 };

static void* work(void* argument) {
    (void)argument;
    void* held[32] = {NULL};
    for (int i = 0; i < kCallsOfThread / 2; ++i) {
        void** place = &held[i % 32];
        if (*place != NULL) device_free(*place);
        *place = device_alloc(512u * (size_t)(1 + i % 64));
        if (i % 16 == 0) usleep(500);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[kThreads];
    for (int i = 0; i < kThreads; ++i)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < kThreads; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (;;)
        pause();
}
