// Whether the process that wrote a trace is still running, and what happened if its trace has no
// end mark.
#pragma once

#include <fragtrace/format.h>

#include <string>

namespace fragtrace::analyzer {

// Whether the process that wrote this trace is still running: same pid and same start time. If it
// has a ring, it must still map it, because an exec keeps pid and start time but unmaps the ring.
bool process_runs(const TraceHeader& trace);

// Whether this process became another program by exec: that program's trace is in the same folder
// as this trace, `path`.
bool called_exec(const std::string& path, const TraceHeader& trace);

}  // namespace fragtrace::analyzer
