// `fragtrace demo`: records and analyses an example training.
#pragma once

namespace fragtrace::launcher {

// Becomes the Python program of the demo, with the arguments after `demo`. Returns only by a
// Refusal.
int demo(int argc, char** argv);

}  // namespace fragtrace::launcher
