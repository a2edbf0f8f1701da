/* Makes CUDA calls in a signal handler that interrupts CUDA calls: what interrupts the recorder is
 * refused by it and counted, the rest is recorded. By a timer, so that it happens anywhere; or
 * certainly in the recorder, by a function of the C library that it uses and this program defines.
 * Runs on plain_runtime.c: no real driver can be called in a handler. */
#include "client.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t g_handled;
static char g_stack[262144];

static void on_tick(int number) {
    (void)number;
    device_free(device_alloc(777));
    ++g_handled;
}

static volatile sig_atomic_t g_interrupt;

/* Stands before the C library's. Once its end is written, the recorder writes each event by the
 * thread that made it. */
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
    if (g_interrupt) {
        g_interrupt = 0;
        raise(SIGPROF);
    }
    return syscall(SYS_pwrite64, file, data, bytes, offset);
}

static void interrupt_the_recorder(void) {
    for (int i = 0; i < 10; ++i) {
        g_interrupt = 1;
        device_free(device_alloc(512));
    }
}

int main(int argc, char** argv) {
    struct sigaction tick;
    memset(&tick, 0, sizeof tick);
    tick.sa_handler = on_tick;
    tick.sa_flags = SA_RESTART;
    if (argc > 1 && strcmp(argv[1], "on-alternate-stack") == 0) {
        const stack_t stack = {.ss_sp = g_stack, .ss_size = sizeof g_stack};
        CHECK(sigaltstack(&stack, NULL) == 0);
        tick.sa_flags |= SA_ONSTACK;
    }
    CHECK(sigaction(SIGPROF, &tick, NULL) == 0);
    if (argc > 1 && strcmp(argv[1], "in-the-recorder") == 0) {
        void (**at_end)(void) = (void (**)(void))dlsym(RTLD_DEFAULT, "plain_runtime_at_end");
        CHECK(at_end != NULL);
        *at_end = interrupt_the_recorder;
        device_work(3);
        puts("done");
        return 0;
    }
    const struct itimerval often = {{0, 500}, {0, 500}};
    CHECK(setitimer(ITIMER_PROF, &often, NULL) == 0);
    for (int i = 0; i < 20000 && g_handled < 40; ++i) {
        device_free(device_alloc(512));
    }
    while (g_handled < 40) {
    }
    const struct itimerval never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_PROF, &never, NULL) == 0);
    puts("done");
    return 0;
}
