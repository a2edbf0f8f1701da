// Whether the process that wrote a trace is still running, and what happened if its trace has no
// end mark. A process id means something only within its PID namespace and boot, which the facts of
// a trace name: nothing is known here about a process of another container, boot or host.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/timeline.h"
#include "analyzer/support/input_file.h"

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

enum class ProcessState : std::uint8_t {
    kRuns,
    kGone,     // no such process here
    kUnknown,  // it may still run: in another PID namespace, boot or host, or hidden from this user
};

// Whether the process that wrote the trace `path` is still running: same pid and same start time.
// If it has a ring, it must still map it, because an exec keeps pid and start time but unmaps the
// ring. Traces of version 0.1.0 name no PID namespace: kGone then also stands for processes of
// other hosts.
ProcessState process_state(const std::string& path,
                           const InputFile& file,
                           const TraceHeader& trace);

// Whether the process was looked up on the host where it ran, and does not run any more.
bool is_known_gone(const TraceHeader& trace,
                   ProcessState state,
                   const std::map<std::string, std::string>& facts);

// How the process ended if its trace, `path`, has no end mark: kRunning, kExec if a later program
// noted that it began or its trace is in the same folder, kKilled if the process is known to have
// ended, otherwise kNotRecorded. `state` is what process_state() returned, `facts` are those of the
// trace and its ring.
// `ring_lost`: the process had a ring file, which is gone. A normal end removes it, so the end mark
// may have been cut off.
Ending ending_without_mark(const std::string& path,
                           const TraceHeader& trace,
                           ProcessState state,
                           const std::map<std::string, std::string>& facts,
                           bool ring_lost = false);

// The name of this host, as traces have it.
std::string this_host();

// The facts that name a PID namespace and a boot, and their values for this process; empty = not
// known.
inline constexpr const char* kPidNamespaceFact = "host.pid_namespace";
inline constexpr const char* kBootFact = "host.boot_id";
std::string this_pid_namespace();
std::string this_boot();

}  // namespace fragtrace::analyzer
