// Writes the signal that ended a process into its trace, and when its parent saw that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

// Adds the signal that ended a process to its trace. The caller waited for the process; the process
// itself could not record the signal. Does nothing if the trace belongs to another process, already
// says how the process ended, or cannot be written. `seen_monotonic_ns` is CLOCK_MONOTONIC when the
// wait ended; nullopt = not known.
void note_signal(const std::string& trace_path,
                 std::uint32_t pid,
                 int signal,
                 std::optional<std::uint64_t> seen_monotonic_ns);

}  // namespace fragtrace::analyzer
