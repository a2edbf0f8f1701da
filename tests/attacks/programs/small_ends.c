/* Ends on a small stack: exit() on a thread with the smallest possible stack, and _exit() in a
 * handler on a small alternate stack. Argument: exit or _exit. */
#include "client.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>

static void* end_here(void* argument) {
    (void)argument;
    exit(0);
}

static void on_signal(int number) {
    (void)number;
    _exit(0);
}

int main(int argc, char** argv) {
    device_work(100);
    puts("done");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        pthread_attr_t attributes;
        pthread_t thread;
        CHECK(pthread_attr_init(&attributes) == 0);
        CHECK(pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)) == 0);
        CHECK(pthread_create(&thread, &attributes, end_here, NULL) == 0);
        pause();
    }
    /* The memory that the kernel itself needs for a handler is added. */
    const size_t bytes = getauxval(AT_MINSIGSTKSZ) + 4096;
    char* memory = (char*)mmap(NULL, 65536 + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(mprotect(memory + 65536, 65536, PROT_READ | PROT_WRITE) == 0);
    const size_t used = (bytes + 4095) / 4096 * 4096;
    CHECK(mprotect(memory + 65536, 65536 - used, PROT_NONE) == 0);
    const stack_t stack = {.ss_sp = memory + 131072 - used, .ss_size = used};
    CHECK(sigaltstack(&stack, NULL) == 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    return 1;
}
