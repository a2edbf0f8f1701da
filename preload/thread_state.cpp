#include "thread_state.h"

namespace fragtrace::preload {

constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec"))){};

}  // namespace fragtrace::preload
