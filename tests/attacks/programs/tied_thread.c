/* The first call comes from a thread bound to one processor, with a real-time policy if that is
 * allowed. The recorder's own thread must have neither. */
#include "client.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static void* first_call(void* argument) {
    cpu_set_t one;
    const struct sched_param real_time = {.sched_priority = 1};
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &real_time);
    (void)argument;
    device_work(10);
    return NULL;
}

static void check_thread(int id) {
    cpu_set_t own;
    cpu_set_t all;
    CHECK(sched_getaffinity(id, sizeof own, &own) == 0);
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(CPU_EQUAL(&own, &all));
    CHECK(sched_getscheduler(id) == SCHED_OTHER);
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, first_call, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    usleep(200000);
    DIR* tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        if (entry->d_name[0] != '.') check_thread(atoi(entry->d_name));
    }
    closedir(tasks);
    puts("done");
    return 0;
}
