// Threads of the recorder: detached, with all signals blocked, and invisible to its hooks.
#pragma once

#include <pthread.h>

namespace fragtrace::preload {

// Starts a thread that calls main(argument). The handle is valid only while the thread cannot have
// ended. Returns an error number, 0 if it runs.
int start_own_thread(void* (*main)(void*), void* argument, pthread_t* thread);

// For the start of `main`: the hooks record nothing that this thread does.
void begin_own_thread();

}  // namespace fragtrace::preload
