// fragtrace try: runs the recorded command again with a recommended change, and compares the
// prediction with the outcome.
#pragma once

namespace fragtrace::launcher {

// argv[0] is "try". Returns 0 if the prediction held, 1 if not. Throws a Refusal for bad usage.
int try_remedy(int argc, char** argv);

}  // namespace fragtrace::launcher
