// From the command line to an exit status: picks the command, turns errors into one line.
#pragma once

namespace fragtrace::analyzer {

int run_command_line(int argc, char** argv);

}  // namespace fragtrace::analyzer
