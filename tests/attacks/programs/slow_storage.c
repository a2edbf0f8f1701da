/* Threads allocate, and the process ends, while the recorder's storage hangs (slow_files.c). No
 * call may take long: most are fast, a few wait for the recorder, which gives up. */
#include "client.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
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

/* Without the recorder they take a few milliseconds together. */
static void fork_often(void) {
    usleep(1500000); /* the recorder writes now, and hangs */
    const double begin = now_s();
    for (int i = 0; i < 30; ++i) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) syscall(SYS_exit_group, 0);
        CHECK(waitpid(child, NULL, 0) == child);
    }
    CHECK(now_s() - begin < 2);
}

int main(int argc, char** argv) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_create(&threads[i], NULL, allocate, NULL) == 0);
    }
    for (int i = 0; i < 4; ++i) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    if (argc > 1 && strcmp(argv[1], "forks") == 0) fork_often();
    puts("done");
    return 0;
}
