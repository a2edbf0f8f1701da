// Skips a test case that cannot run here: its test is reported as skipped by name, never as passed.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fragtrace::test {

// Ends the program. For test cases that run separately (fragtrace_add_unit_test), with their own
// tag.
[[noreturn]] inline void skip(const std::string& why) {
    std::printf("skipped: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(77);
}

}  // namespace fragtrace::test
