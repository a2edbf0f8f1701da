/* Writes "signal NUMBER VALUE" for each signal that it gets, until SIGTERM. With an argument it
 * keeps the default handling of stop signals. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_signal(int number, siginfo_t* info, void* context) {
    (void)context;
    char line[64];
    const int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
    const int size = snprintf(line, sizeof line, "signal %d %d\n", number, value);
    if (write(STDOUT_FILENO, line, (size_t)size) != size) {
        _exit(1);
    }
    if (number == SIGTERM) {
        _exit(7);
    }
}

int main(int argc, char** argv) {
    (void)argv;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = log_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (int number = 1; number <= 64; ++number) {
        const int stops = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
        if (argc == 1 || !stops) {
            sigaction(number, &action, NULL); /* fails for signals that cannot be handled */
        }
    }
    printf("up %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        pause();
    }
}
