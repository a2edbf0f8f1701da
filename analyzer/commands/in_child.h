// Runs a command of this program in a child process that cannot change a file.
#pragma once

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct ChildResult {
    bool in_time = true;   // false: killed at the time limit
    bool whole = true;     // false: the output was too long and is cut
    int exit_status = -1;  // -1: it crashed
    std::string output;
    std::string errors;
};

struct ChildLimits {
    int seconds;
    std::size_t output_bytes;
};

// Runs `fraganalyze WORDS...` with `input` as its standard input. The child cannot write into any
// file, and moves no ring into its trace. Only for processes with one thread.
ChildResult run_read_only(const std::vector<std::string>& words,
                          const std::string& input,
                          ChildLimits limits);

}  // namespace fragtrace::analyzer
