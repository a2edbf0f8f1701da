// What `fragtrace doctor` finds out about the program to record: a Python interpreter with its
// PyTorch, or another program.
#pragma once

#include "launcher/finding.h"
#include "launcher/libraries.h"

#include <string>
#include <vector>

namespace fragtrace::launcher {

// `command` is the program and its arguments; empty: the Python interpreter in $PATH. Runs an
// interpreter once, with the recorder, without a use of CUDA. Other programs are only read.
// `has_card`: a card of this machine can be used.
void look_at_target(const Installation& installation,
                    const std::vector<std::string>& command,
                    bool has_card,
                    Findings* all);

}  // namespace fragtrace::launcher
