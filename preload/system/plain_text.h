// Our own string functions, for code that runs when the first library of a process looks a name up.
// At that time, a sanitizer's runtime replaces the C library's functions and cannot be called yet.
#pragma once

#include <stddef.h>

namespace fragtrace::preload {

// The empty asm statements prevent the compiler from turning a loop into the library call that it
// replaces.
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
