// Runs a client program with chosen preloads. Its trace gets its own folder.
#pragma once

#include "trace_file.h"

#include <string>
#include <vector>

namespace fragtrace::tests {

struct Finished {
    int exit_code = -1;  // 128 + signal if it was killed
    std::string output;  // stdout and stderr together
    std::vector<TraceContents> traces;

    // The only trace. Fails the test if there are none or several.
    [[nodiscard]] const TraceContents& trace() const;
};

struct Setup {
    std::vector<std::string> preload{};  // paths, in order
    std::string card{};                  // FRAGTRACE_VIRTUAL_GPU with its libraries, "" = none
    std::vector<std::string> environment{};
};

Finished run(const std::vector<std::string>& command, const Setup& setup);

// Paths in the build tree.
std::string shim();
std::string built(const std::string& name);  // a client or toy library of these tests

}  // namespace fragtrace::tests
