// Whether the process that wrote a trace is still running, and what happened if its trace has no
// end mark.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/timeline.h"

#include <map>
#include <string>

namespace fragtrace::analyzer {

// Whether the process that wrote this trace is still running: same pid and same start time. If it
// has a ring, it must still map it, because an exec keeps pid and start time but unmaps the ring.
bool process_runs(const TraceHeader& trace);

// How the process ended if its trace, `path`, has no end mark: kRunning (`runs` is what
// process_runs() returned), kExec if the trace of the later program is in the same folder, kKilled
// if the process is known to have ended, otherwise kNotRecorded. `facts` are those of the trace.
Ending ending_without_mark(const std::string& path,
                           const TraceHeader& trace,
                           bool runs,
                           const std::map<std::string, std::string>& facts);

// The name of this host, as traces have it.
std::string this_host();

}  // namespace fragtrace::analyzer
