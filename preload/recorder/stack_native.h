// The native call stack of the calling thread, as a node of the stack tree.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// Opens the unwinder; records whether native stacks are on, and why not.
void start_native_stacks(Session* session);

// 0 when native stacks are off or nothing could be unwound.
uint32_t native_stack(Session* session);

}  // namespace fragtrace::preload
