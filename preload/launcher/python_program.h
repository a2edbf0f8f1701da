// Programs of fragtrace in Python, which are installed below share/fragtrace.
#pragma once

#include "launcher/libraries.h"

#include <string>
#include <vector>

namespace fragtrace::launcher {

// Returns the interpreter of the environment that fragtrace is installed in, which has the packages
// of its extras. Elsewhere the first python3 on the path. Throws a Refusal (kNotFound) if there is
// none.
std::string own_interpreter(const Installation& installation);

// Replaces this process by `python` with share/fragtrace/`program` and these arguments. Throws a
// Refusal if the program is missing (kNotFound) or the interpreter cannot be run (kCannotRun).
[[noreturn]] void become_python(const Installation& installation,
                                const std::string& python,
                                const std::string& program,
                                const std::vector<std::string>& arguments);

}  // namespace fragtrace::launcher
