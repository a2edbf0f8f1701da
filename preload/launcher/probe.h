// Runs something in a process of its own, with limits: what it prints, and how it ended.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct Probe {
    std::string output;    // of standard output, at most 1 MiB
    std::string errors;    // of standard error, at most 1 MiB; empty for a function
    bool in_time = false;  // false: it was killed at the time limit, or could not be started
    int status = 0;        // as waitpid returns it; valid if in_time

    [[nodiscard]] bool succeeded() const { return in_time && status == 0; }
};

// Calls a function in a forked child. It writes to the descriptor that it gets. A library that
// crashes or hangs there does no harm to this process.
Probe probe_function(const std::function<void(int output)>& function, int limit_s);

// Runs a command with these changes to the environment and without input.
Probe probe_command(const std::vector<std::string>& command,
                    const std::vector<std::pair<std::string, std::string>>& environment,
                    int limit_s);

}  // namespace fragtrace::launcher
