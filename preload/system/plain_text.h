// String functions of our own, for what runs when the first library of a process looks a name up:
// a sanitizer's runtime stands before the C library's and is not ready to be called then.
#pragma once

#include <stddef.h>

namespace fragtrace::preload {

// The empty statements keep the compiler from turning a loop into the call that it replaces.
inline size_t text_length(const char* text) {
    size_t length = 0;
    while (text[length] != '\0') {
        ++length;
        asm volatile("");
    }
    return length;
}

inline bool begins_with(const char* text, const char* prefix) {
    for (; *prefix != '\0'; ++text, ++prefix) {
        if (*text != *prefix) {
            return false;
        }
        asm volatile("");
    }
    return true;
}

inline bool is_same_text(const char* left, const char* right) {
    for (; *left == *right; ++left, ++right) {
        if (*left == '\0') {
            return true;
        }
        asm volatile("");
    }
    return false;
}

}  // namespace fragtrace::preload
