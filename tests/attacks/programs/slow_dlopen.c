/* A thread opens a library whose constructor takes seconds while others allocate. */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>

static void* open_slowly(void* argument) {
    char path[4096];
    (void)argument;
    snprintf(path, sizeof path, "%s/libslow_library.so", getenv("CLIENT_PROGRAMS"));
    CHECK(dlopen(path, RTLD_NOW) != NULL);
    return NULL;
}

int main(void) {
    pthread_t thread;
    device_work(10);
    CHECK(pthread_create(&thread, NULL, open_slowly, NULL) == 0);
    usleep(500000);
    for (int i = 0; i < 30000; ++i) {
        device_free(device_alloc(512));
        if (i % 300 == 0) usleep(10000);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    puts("done");
    return 0;
}
