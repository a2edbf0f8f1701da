// The command line of `fragtrace run` and the environment variables that belong to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct Request {
    bool help = false;
    bool record = true;
    bool quiet = false;
    std::string virtual_gpu;  // empty = the GPU of this machine
    // Variables that options set for the program, such as {"FRAGTRACE_STACKS", "native"}.
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<std::string> command;

    // Returns the value that an option set, otherwise that of the environment; empty if neither has
    // it.
    [[nodiscard]] std::string setting_of(const char* variable) const;
};

// `argv[0]` is "run". Throws a Refusal if an option has a value that the recorder would reject, or
// a FRAGTRACE_* variable of the environment that no option replaces.
Request parse_run(int argc, const char* const* argv);

}  // namespace fragtrace::launcher
