// `fragtrace clean`: removes files that killed processes left.
#pragma once

namespace fragtrace::launcher {

// Handles the command line after `clean`. Returns the exit code: 0, or 1 if something could not be
// removed.
int clean(int argc, char** argv);

}  // namespace fragtrace::launcher
