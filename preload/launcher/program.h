// A child process: what it is, how it starts, why it could not.
#pragma once

#include "launcher/signals.h"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace fragtrace::launcher {

struct Program {
    std::string file;  // what is executed
    std::vector<std::string> arguments;
    std::vector<std::pair<std::string, std::string>> environment;  // changes of ours
    int output = -1;  // for its standard output and error; -1 = ours
};

// The file that a shell would execute for this name. Throws a Refusal where there is none.
std::string find_command(const std::string& name);

class Child {
  public:
    // The child is killed when this process is: a launcher killed by SIGKILL leaves no program
    // behind.
    Child(const Program& program, const HeldSignals& signals);
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t id() const { return id_; }

    // After its end: why it could not be executed, an errno, or 0.
    [[nodiscard]] int failure() const;

  private:
    pid_t id_ = -1;
    int failure_pipe_ = -1;
};

}  // namespace fragtrace::launcher
