// The command line of `fragtrace run` and the variables of the environment that go with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct Request {
    bool help = false;
    bool record = true;
    bool quiet = false;
    std::string virtual_gpu;  // empty = this machine's GPU
    // Variables that options set for the program, such as {"FRAGTRACE_STACKS", "native"}.
    std::vector<std::pair<std::string, std::string>> settings;
    std::vector<std::string> command;

    // The setting, or else what the environment has; empty where neither has it.
    [[nodiscard]] std::string setting_of(const char* variable) const;
};

// `argv[0]` is "run". Throws a Refusal where an option, or a FRAGTRACE_* variable of the
// environment that no option replaces, has a value that the recorder would not take.
Request parse_run(int argc, const char* const* argv);

}  // namespace fragtrace::launcher
