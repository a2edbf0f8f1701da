// `fragtrace demo`: records and analyses an example training.
#pragma once

namespace fragtrace::launcher {

// Replaces this process by the Python program of the demo (exec), with the arguments after `demo`.
// Never returns; throws a Refusal on failure.
int demo(int argc, char** argv);

}  // namespace fragtrace::launcher
