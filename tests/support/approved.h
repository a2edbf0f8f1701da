// Comparison with an approved file. FRAGTRACE_APPROVE=1 writes the file anew: review the difference
// like any other change.
#pragma once

#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <sstream>
#include <string>

namespace fragtrace::testing {

// The first line in which two texts differ, with its number; empty if there is none.
inline std::string first_difference(const std::string& text, const std::string& approved) {
    std::istringstream left(text);
    std::istringstream right(approved);
    std::string is;
    std::string was;
    for (int line = 1;; ++line) {
        const bool more = bool(std::getline(left, is));
        const bool expected = bool(std::getline(right, was));
        if (!more && !expected) {
            return text == approved ? "" : "the end of the last line";
        }
        if (more != expected || is != was) {
            return "line " + std::to_string(line) +
                   "\n  is:       " + (more ? is : "(the text ends)") +
                   "\n  approved: " + (expected ? was : "(the text ends)");
        }
    }
}

inline void check_approved(const std::string& path, const std::string& text) {
    if (std::getenv("FRAGTRACE_APPROVE") != nullptr) {
        write_file(path, text);
    }
    INFO("FRAGTRACE_APPROVE=1 writes " << path);
    CHECK(first_difference(text, read_file(path)) == "");
}

}  // namespace fragtrace::testing
