// A test case that cannot be run here: its test is skipped by name, never passed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fragtrace::test {

// Ends the program: for test cases that stand apart (fragtrace_add_unit_test), with a tag of their
// own.
[[noreturn]] inline void skip(const std::string& why) {
    std::printf("skipped: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(77);
}

}  // namespace fragtrace::test
