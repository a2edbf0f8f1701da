// fragtrace doctor: what will be recorded on this machine, and why something would not.
#pragma once

namespace fragtrace::launcher {

// argv[0] is "doctor". Returns 0 if recording will work, 1 if not. Throws a Refusal for bad usage.
int doctor(int argc, char** argv);

}  // namespace fragtrace::launcher
