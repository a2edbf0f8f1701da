/* Threads whose cancellation is pending when they make the process's first call, the first of their
 * own, or the first with a new stack. A hooked call is no place to be cancelled in: the runtime's
 * locks would stay held. */
#include "client.h"

#include <pthread.h>

static void* call_and_end(void* data) {
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait((pthread_barrier_t*)data);
    pthread_barrier_wait((pthread_barrier_t*)data); /* the request is made between the two */
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    device_free(device_alloc(1000));
    pthread_testcancel();
    say_and_die("a thread was not cancelled");
    return NULL;
}

int main(void) {
    open_log(); /* which is a place to be cancelled in */
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
