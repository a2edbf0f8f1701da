#include "system/thread_state.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace fragtrace::preload {

constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec"))){};

uint32_t ask_thread_id() {
    t_thread.thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    return t_thread.thread_id;
}

}  // namespace fragtrace::preload
