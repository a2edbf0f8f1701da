// Writes the signal that ended a process into its trace.
#pragma once

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

// Adds the signal that ended a process to its trace. The caller waited for the process; the process
// itself could not record the signal. Does nothing if the trace belongs to another process, already
// says how the process ended, or cannot be written.
void note_signal(const std::string& trace_path, std::uint32_t pid, int signal);

}  // namespace fragtrace::analyzer
