/* No thread can be created at the first call, as at a limit of processes. Later one can. The
 * recorder's own thread must then take over its work. */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static int g_refuses = 1;

/* In place of the C library's, for the recorder too. */
int pthread_create(pthread_t* thread,
                   const pthread_attr_t* attributes,
                   void* (*start)(void*),
                   void* argument) {
    typedef int Create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    Create* real = (Create*)dlsym(RTLD_NEXT, "pthread_create");
    return g_refuses ? EAGAIN : real(thread, attributes, start, argument);
}

static int thread_count(void) {
    char line[256];
    int count = 0;
    FILE* status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        (void)sscanf(line, "Threads: %d", &count);
    }
    fclose(status);
    return count;
}

int main(void) {
    const int recorded = dlsym(RTLD_DEFAULT, "fragtrace_start") != NULL;
    for (int i = 0; i < 6000; ++i) { /* fills the ring of 4096 events */
        device_free(device_alloc(512));
    }
    CHECK(thread_count() == 1);
    g_refuses = 0;
    usleep(1100000); /* the recorder tries once a second */
    for (int i = 0; i < 6000; ++i) {
        device_free(device_alloc(512));
    }
    CHECK(thread_count() == 1 + recorded);
    puts("done");
    return 0;
}
