/* Makes CUDA calls in a signal handler that interrupts CUDA calls. The recorder refuses and counts
 * calls that interrupt the recorder itself, and records the others.
 *
 * The signal comes from a timer, so it comes anywhere. Or it surely comes within the recorder, from
 * a C library function that the recorder uses and this program defines. It runs on plain_runtime.c,
 * because no real driver can be called in a handler. */
#include "client.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
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

static long raw_call(long number, const long words[6]) {
    long result;
#if defined(__x86_64__)
    register long fourth __asm__("r10") = words[3];
    register long fifth __asm__("r8") = words[4];
    register long sixth __asm__("r9") = words[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number),
                       "D"(words[0]),
                       "S"(words[1]),
                       "d"(words[2]),
                       "r"(fourth),
                       "r"(fifth),
                       "r"(sixth)
                     : "rcx", "r11", "memory");
#else
    register long first __asm__("x0") = words[0];
    register long second __asm__("x1") = words[1];
    register long third __asm__("x2") = words[2];
    register long fourth __asm__("x3") = words[3];
    register long fifth __asm__("x4") = words[4];
    register long sixth __asm__("x5") = words[5];
    register long which __asm__("x8") = number;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth), "r"(which)
                     : "memory");
    result = first;
#endif
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* Replaces the C library's function. After the end is written, the recorder waits on a futex for
 * each event to be written. */
long syscall(long number, ...) {
    va_list rest;
    long words[6];
    va_start(rest, number);
    for (int i = 0; i < 6; ++i) {
        words[i] = va_arg(rest, long);
    }
    va_end(rest);
    if (number == SYS_futex && g_interrupt && raw_call(SYS_gettid, words) == getpid()) {
        g_interrupt = 0;
        raise(SIGPROF);
    }
    return raw_call(number, words);
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
