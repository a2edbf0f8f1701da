// `fragtrace clean`: what killed processes left behind, and what of it can go.
#pragma once

namespace fragtrace::launcher {

// The command line behind `clean`. The exit code: 0, or 1 where something could not be removed.
int clean(int argc, char** argv);

}  // namespace fragtrace::launcher
