/* soak EVENTS: two threads that together make so many calls, each with 1,000 live allocations. The
 * rate depends only on the duration of the calls. */
#include "client.h"

#include <pthread.h>

static long g_pairs;

static void* work(void* argument) {
    enum { kHeld = 1000 };

    static __thread void* held[kHeld];
    (void)argument;
    for (long i = 0; i < g_pairs; ++i) {
        void** place = &held[i % kHeld];
        CHECK(*place == NULL || cudaFree(*place) == 0);
        CHECK(cudaMalloc(place, 512u * (size_t)(1 + i % 32)) == 0);
    }
    return NULL;
}

int main(int argc, char** argv) {
    CHECK(argc == 2);
    g_pairs = atol(argv[1]) / 4;
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    puts("done");
    return 0;
}
