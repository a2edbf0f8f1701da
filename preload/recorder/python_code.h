// Which Python code objects are known, and by which numbers the trace knows them.
//
// A code object's address says which one it is for as long as it lives, but scripts that execute
// generated code get the same addresses again and again. So we are told of the end: code objects
// are freed by a function of their type (tp_dealloc), in whose place we put one of ours, which
// forgets the address and passes the object on. It runs before the memory can be used again, and
// whoever runs a newer object at that address got it from the interpreter later: a known address
// is never stale, and frames need no look at what their code says.
//
// What is new is told apart by its contents, so that a program that executes the same text a
// million times has one number for it.
//
// Where the function cannot be put there, or is no longer there, contents decide at each frame of
// each event: slow, and as right. What remains: two code objects whose contents have the same
// 64-bit hash get one number; and frees are missed if somebody takes our function out and puts it
// back between two events.
#pragma once

#include "stacks/python_layout.h"

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

inline constexpr uint32_t kUnknownCode = ~uint32_t{0};

// Maps the tables, for a session; false without memory.
bool map_python_codes();
bool python_codes_mapped();

// For a forked child: the numbers belong to the session of the parent.
void forget_python_codes();

// Has the frees of code objects told to us, for the life of the process. Once, by one thread.
void watch_code_frees(const PythonTypes& types);

// What was found out about frames by their addresses holds as long as this number stays the same;
// 0: not at all, since frees are not told.
uint64_t python_code_era();

// What the type had in the place of ours; for tests.
void* python_code_dealloc();

// The number of a code object that a frame of this thread holds; kUnknownCode without room.
uint32_t python_code_number(Session* session,
                            const PythonLayout& layout,
                            const PythonTypes& types,
                            const void* code);

}  // namespace fragtrace::preload
