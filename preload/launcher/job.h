// `fragtrace job analyze`: summarizes the traces of a job on many workers.
#pragma once

namespace fragtrace::launcher {

// Becomes the Python program scripts/job/analyze.py, with the arguments after `job`. Returns only
// to print the help.
int job(int argc, char** argv);

}  // namespace fragtrace::launcher
