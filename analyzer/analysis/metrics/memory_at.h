// What a process held at one moment of its run, from its trace: memory by line, and the phase that
// it was in.
#pragma once

#include "analyzer/model/held_by.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct DeviceAt {
    DeviceId device = 0;
    MemoryTotals totals;
    std::vector<HeldBy> holders;  // most bytes first, by origin in MemoryAt::tables
};

struct MemoryAt {
    Timeline tables;  // without events
    std::vector<DeviceAt> devices;
    // The phase of the thread of the last event; if that thread has none, the open phase that began
    // last. Phases of libraries do not count. Empty: no phase is open.
    std::string phase;
    bool has_phases = false;         // whether the program had marked any phase by then
    std::uint64_t idle_ns = 0;       // since the last event
    std::uint64_t sequence = 0;      // the last event, as the recorder numbers it
    bool recording_stopped = false;  // recording was off: what changed meanwhile is unknown
    bool complete = true;            // false: events were lost, or come too late to be counted
};

// The state after all events up to `time_ns` (since the start of the trace). Reads the trace twice,
// and keeps no events.
Result<MemoryAt> memory_at(const std::string& path, std::uint64_t time_ns);

}  // namespace fragtrace::analyzer
