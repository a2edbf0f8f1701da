/* Threads make calls while another process sends signals as fast as possible. Every call is
 * recorded, and every signal reaches its handler. */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

static volatile int g_seen[2];

static void count(int signal) {
    __atomic_fetch_add(&g_seen[signal == SIGUSR1 ? 0 : 1], 1, __ATOMIC_RELAXED);
}

static bool enough(void) {
    return g_seen[0] > 100 && g_seen[1] > 100;
}

/* On a busy machine the sender may be slow. */
static void* work(void* argument) {
    (void)argument;
    for (int i = 0; i < 20 || (!enough() && i < 5000); ++i) {
        device_work(200);
        usleep(1000);
    }
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    const pid_t target = getpid();
    const pid_t sender = fork();
    if (sender == 0) {
        while (kill(target, SIGUSR1) == 0 && kill(target, SIGUSR2) == 0 && getppid() == target) {
            usleep(20);
        }
        _exit(0);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(kill(sender, SIGKILL) == 0 && waitpid(sender, NULL, 0) == sender);
    CHECK(enough());
    puts("done");
    return 0;
}
