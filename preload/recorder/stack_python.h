// The Python call stack of the calling thread, as a node of the stack tree.
//
// Frameworks give the GIL up before they allocate, so the thread's own frame structures are read
// without it: they cannot change while their thread is inside our call. No Python function is
// called that can allocate, count a reference or start a garbage collection.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// Looks for an interpreter; records whether Python stacks are on, and why not.
void start_python_stacks(Session* session);

// Again, from the drain: an interpreter may be loaded late.
void look_for_python(Session* session);

// 0 when Python stacks are off or the thread runs no Python.
uint32_t python_stack(Session* session);

// For a forked child: numbers of code belong to the session of the parent.
void forget_python();

}  // namespace fragtrace::preload
