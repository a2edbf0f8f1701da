// Runs a client program with chosen preloads, in a folder of its own for its trace.
#pragma once

#include "trace_file.h"

#include <string>
#include <vector>

namespace fragtrace::tests {

struct Finished {
    int exit_code = -1;  // 128 + signal if it was killed
    std::string output;  // stdout and stderr together
    std::vector<TraceContents> traces;

    // The only trace; fails the test if there is none or more than one.
    [[nodiscard]] const TraceContents& trace() const;
};

struct Setup {
    std::vector<std::string> preload{};  // paths, in order
    std::string card{};                  // FRAGTRACE_VIRTUAL_GPU with its libraries, "" = none
    std::vector<std::string> environment{};
};

Finished run(const std::vector<std::string>& command, const Setup& setup);

// Paths of the built tree.
std::string shim();
std::string built(const std::string& name);  // a client or toy library of these tests

}  // namespace fragtrace::tests
