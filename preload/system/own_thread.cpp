#include "system/own_thread.h"

#include "system/thread_state.h"

#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kStack_bytes = 256 * 1024;
// Large static TLS of the host's libraries may need a larger stack.
constexpr size_t kLargeStack_bytes = 8u << 20;

}  // namespace

int start_own_thread(void* (*main)(void*), void* argument, pthread_t* thread) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // A sandbox may answer a system call by SIGSYS, and its handler then does the work of the call.
    // The kernel kills a process in which this signal is blocked.
    sigdelset(&all, SIGSYS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStack_bytes);
    int error = pthread_create(thread, &attributes, main, argument);
    if (error != 0) {
        pthread_attr_setstacksize(&attributes, kLargeStack_bytes);
        error = pthread_create(thread, &attributes, main, argument);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error;
}

void begin_own_thread() {
    t_thread.inside_hook = true;
    t_thread.inside_recorder = true;
    prctl(PR_SET_NAME, "fragtrace", 0, 0, 0);
}

}  // namespace fragtrace::preload
