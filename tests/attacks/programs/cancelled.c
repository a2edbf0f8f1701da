/* Threads with a pending cancellation make the first call of the process, their own first call, or
 * their first call with a new stack. They must not be cancelled within a hooked call: the runtime's
 * locks would stay locked. */
#include "client.h"

#include <pthread.h>

static void* call_and_end(void* data) {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait((pthread_barrier_t*)data);
    pthread_barrier_wait((pthread_barrier_t*)data); /* cancelled between the two waits */
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    device_free(device_alloc(1000));
    pthread_testcancel();
    say_and_die("a thread was not cancelled");
    return NULL;
}

int main(void) {
    open_log(); /* which is a cancellation point */
    for (int i = 0; i < 50; ++i) {
        pthread_barrier_t barrier;
        pthread_t thread;
        void* result = NULL;
        CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
        CHECK(pthread_create(&thread, NULL, call_and_end, &barrier) == 0);
        pthread_barrier_wait(&barrier);
        CHECK(pthread_cancel(thread) == 0);
        pthread_barrier_wait(&barrier);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED);
        pthread_barrier_destroy(&barrier);
    }
    device_work(10);
    puts("done");
    return 0;
}
