// Whether the process that wrote a trace still runs, and what became of one whose trace has no end.
#pragma once

#include <fragtrace/format.h>

#include <string>

namespace fragtrace::analyzer {

// Is the process that wrote this trace still there? (Same pid, same start, and, if it has a ring,
// the ring mapped: an exec keeps pid and start but drops the ring.)
bool process_runs(const TraceHeader& trace);

// Does the trace of a program that this process became by exec stand beside this one, at `path`?
bool called_exec(const std::string& path, const TraceHeader& trace);

}  // namespace fragtrace::analyzer
