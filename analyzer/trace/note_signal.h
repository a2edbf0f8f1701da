// Writes the signal that ended a process into its trace.
#pragma once

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// Adds the signal that ended a process to its trace, for who waited for it: the trace itself cannot
// know. Nothing where the trace is another process's, tells its end, or cannot be written.
void note_signal(const std::string& trace_path, std::uint32_t pid, int signal);

}  // namespace fragtrace::analyzer
