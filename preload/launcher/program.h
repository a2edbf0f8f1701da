// A child process: its description, its start, and the reason if it could not start.
#pragma once

#include "launcher/signals.h"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct Program {
    std::string file;  // the file to execute
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;  // changes to our environment
    int output = -1;         // for its standard output and error; -1 = the same as ours
    bool errors_too = true;  // false: what it writes to standard error is dropped
};

// Returns the file that a shell would execute for this name. Throws a Refusal if there is none.
std::string find_command(const std::string& name);

class Child {
  public:
    // The child is killed when this process is killed, even by SIGKILL: so no program is left
    // running.
    Child(const Program& program, const HeldSignals& signals);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

    // Valid after its end: the errno if it could not be executed, otherwise 0.
    [[nodiscard]] int failure() const;

  private:
    pid_t id_ = -1;
    int failure_pipe_ = -1;
};

}  // namespace fragtrace::launcher
