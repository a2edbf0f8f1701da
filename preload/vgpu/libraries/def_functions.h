// The functions of a library's .def file that need no code of their own. A file that includes this
// and the .def has a struct Handle, kSuccess and `int compute(const Handle*, void** parameters)`.
#pragma once

#include "common/stub.h"

#include <cstdint>

#define FT_SETUP(name)         \
    FT_EXPORT int name(void) { \
        return kSuccess;       \
    }
// The arguments in registers, and the caller's stack, where further ones are.
#define FT_COMPUTE(name)                                                       \
    FT_EXPORT int name(const Handle* handle,                                   \
                       uintptr_t a,                                            \
                       uintptr_t b,                                            \
                       uintptr_t c,                                            \
                       uintptr_t d,                                            \
                       uintptr_t e,                                            \
                       uintptr_t f,                                            \
                       uintptr_t g) {                                          \
        uintptr_t registers[] = {a, b, c, d, e, f, g};                         \
        void* parameters[] = {registers, __builtin_frame_address(0), nullptr}; \
        return compute(handle, parameters);                                    \
    }
