// The Python call stack of the calling thread, as a node of the stack tree.
//
// Frameworks release the GIL before they allocate, so the thread's frame structures are read
// without it. They cannot change while their thread is inside our call. No Python function is
// called that could allocate, change a reference count or start a garbage collection.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// Looks for an interpreter. Records whether Python stacks are on, and the reason if not.
void start_python_stacks(Session* session);

// Called repeatedly by the drain, because an interpreter may be loaded late.
void look_for_python(Session* session);

// Returns 0 if Python stacks are off or the thread runs no Python.
uint32_t python_stack(Session* session);

// For a forked child: the numbers of code objects belong to the parent's session.
void forget_python();

}  // namespace fragtrace::preload
