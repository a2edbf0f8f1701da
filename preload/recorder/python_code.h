// Known Python code objects, and the numbers that the trace uses for them.
//
// A code object's address identifies it while it lives. But scripts that execute generated code get
// the same addresses again and again. So the recorder must know when a code object is freed. Its
// type's tp_dealloc frees it; the recorder replaces that function by one that forgets the address
// and then calls the original. It runs before the memory can be reused. So a known address always
// means the same code object, and frames need no check of their code's contents.
//
// Unknown code objects are compared by contents, so that a program that executes the same text a
// million times has one number for it.
//
// If tp_dealloc cannot be replaced, or somebody restored it, the contents are compared at each
// frame of each event: slow, but equally correct. Two errors remain possible. Two code objects
// whose contents have the same 64-bit hash get one number. And frees are missed if somebody removes
// our function and puts it back between two events.
#pragma once

#include "stacks/python_layout.h"

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

inline constexpr uint32_t kUnknownCode = ~uint32_t{0};

// Maps the tables for a session. Returns false without memory.
bool map_python_codes();
bool python_codes_mapped();

// For a forked child: the numbers belong to the parent's session.
void forget_python_codes();

// Replaces tp_dealloc of code objects, for the life of the process. Must be called once, by one
// thread.
void watch_code_frees(const PythonTypes& types);

// Results about frames that were found by address are valid while this number stays the same. 0:
// never valid, because frees are not seen.
uint64_t python_code_era();

// Returns the tp_dealloc that ours replaced; for tests.
void* python_code_dealloc();

// Returns the number of a code object that a frame of this thread uses; kUnknownCode without room.
uint32_t python_code_number(Session* session,
                            const PythonLayout& layout,
                            const PythonTypes& types,
                            const void* code);

}  // namespace fragtrace::preload
