// The native call stack of the calling thread, as a node of the stack tree.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// Opens the unwinder. Records whether native stacks are on, and the reason if not.
void start_native_stacks(Session* session);

// Returns 0 if native stacks are off or nothing could be unwound.
uint32_t native_stack(Session* session);

}  // namespace fragtrace::preload
