// The patterns in the folder of traces (FRAGTRACE_OUTPUT, -o): %h host, %p process id, %r rank,
// %q{VARIABLE} a variable of the environment, %% a percent sign. The recorder replaces them in each
// process, since only the process knows its id and rank. The launcher splits them, to create the
// folder and to find the traces.
#pragma once

#include <stddef.h>
#include <string.h>

namespace fragtrace::preload {

// A piece of a pattern. Its kind is the letter after the percent sign, 0 for plain text. `text` is
// the plain text ("%" for %%), or the name of the variable for 'q'.
struct PatternPiece {
    char kind;
    const char* text;
    size_t size;
};

// Reads the piece at *at and moves *at past it. Returns false at the end of the pattern, and, with
// *at still at a percent sign, if the pattern is malformed.
inline bool next_piece(const char** at, PatternPiece* piece) {
    const char* text = *at;
    if (*text == '\0') {
        return false;
    }
    if (*text != '%') {
        *piece = {0, text, strcspn(text, "%")};
        *at = text + piece->size;
        return true;
    }
    switch (text[1]) {
        case '%':
            *piece = {0, text, 1};
            *at = text + 2;
            return true;
        case 'h':
        case 'p':
        case 'r':
            *piece = {text[1], text, 0};
            *at = text + 2;
            return true;
        case 'q': {
            const char* name = text + 3;
            const size_t size = text[2] == '{' ? strcspn(name, "}=/%") : 0;
            if (size == 0 || name[size] != '}') {
                return false;
            }
            *piece = {'q', name, size};
            *at = name + size + 1;
            return true;
        }
        default:
            return false;
    }
}

inline bool is_pattern(const char* text) {
    PatternPiece piece{};
    while (next_piece(&text, &piece)) {
    }
    return *text == '\0';
}

}  // namespace fragtrace::preload
