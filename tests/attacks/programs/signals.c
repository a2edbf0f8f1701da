/* A program with signal handlers, masks, an alternate stack and a profiling timer that interrupts
 * hooked calls. All of them stay as the program set them, from the first call to the end. */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t g_ticks;
static volatile sig_atomic_t g_usr1;
static volatile sig_atomic_t g_on_alternate_stack;
static char g_stack[65536];
static pthread_t g_main;
static volatile sig_atomic_t g_wrong_thread;

static void on_tick(int number) {
    (void)number;
    char here = 0;
    ++g_ticks;
    g_on_alternate_stack = &here >= g_stack && &here < g_stack + sizeof g_stack;
    if (!pthread_equal(pthread_self(), g_main)) {
        ++g_wrong_thread; /* no thread of the recorder may receive the program's signals */
    }
}

static void on_usr1(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    ++g_usr1;
    if (!pthread_equal(pthread_self(), g_main)) {
        ++g_wrong_thread;
    }
}

static void print_state(const char* when) {
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    printf("%s: blocked", when);
    for (int i = 1; i < 65; ++i) {
        if (sigismember(&mask, i) == 1) printf(" %d", i);
    }
    printf("; handled");
    for (int i = 1; i < 65; ++i) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
            printf(" %d(%s, flags %x)",
                   i,
                   action.sa_handler == SIG_IGN ? "ignored" : "handler",
                   (unsigned)action.sa_flags);
        }
    }
    stack_t stack;
    CHECK(sigaltstack(NULL, &stack) == 0);
    printf("; alternate stack %s of %zu\n",
           stack.ss_sp == (void*)g_stack ? "ours" : "other",
           stack.ss_size);
    sigset_t pending;
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGXFSZ) &&
          !sigismember(&pending, SIGPIPE));
}

int main(void) {
    g_main = pthread_self();
    const stack_t stack = {.ss_sp = g_stack, .ss_size = sizeof g_stack};
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction tick;
    memset(&tick, 0, sizeof tick);
    tick.sa_handler = on_tick;
    tick.sa_flags = SA_RESTART | SA_ONSTACK;
    CHECK(sigaction(SIGPROF, &tick, NULL) == 0);
    struct sigaction usr1;
    memset(&usr1, 0, sizeof usr1);
    usr1.sa_sigaction = on_usr1;
    usr1.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGUSR1, &usr1, NULL) == 0);
    signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    sigaddset(&blocked, SIGCHLD);
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
    print_state("before");
    device_work(1);
    print_state("after the first calls");
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
    for (int i = 0; g_ticks < 30; ++i) {
        if (i < 5000) {
            device_free(device_alloc(4096));
        } else {
            size_t free_bytes = 0;
            size_t total_bytes = 0;
            CHECK(cudaMemGetInfo(&free_bytes, &total_bytes) == 0);
        }
        if (i % 1000 == 0) {
            CHECK(kill(getpid(), SIGUSR1) == 0); /* the kernel selects a thread */
        }
    }
    const struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
    CHECK(g_ticks > 0 && g_usr1 > 0 && g_on_alternate_stack);
    CHECK(g_wrong_thread == 0);
    CHECK(kill(getpid(), SIGUSR2) == 0); /* blocked here: it must stay pending */
    sigset_t pending;
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2));
    int taken = 0;
    CHECK(sigwait(&blocked, &taken) == 0 && taken == SIGUSR2);
    print_state("at the end");
    return 0;
}
