// Runs a command line and returns the exit status: selects the command and prints errors as one
// line.
#pragma once

namespace fragtrace::analyzer {

int run_command_line(int argc, char** argv);

}  // namespace fragtrace::analyzer
