// Summarises a trace without reading its events, which is enough to list hundreds of traces at
// once.
//
// Reads the file header, the chunk headers, the facts and the end. If a process left no end mark,
// its ring is read, too, but never absorbed.
#pragma once

#include "analyzer/model/job_place.h"
#include "analyzer/support/result.h"
#include "analyzer/trace/process_end.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct TraceOutline {
    std::string path;
    std::uint32_t pid = 0;
    JobPlace place;
    std::uint64_t start_unix_ns = 0;
    std::string command_line;  // empty = unknown
    std::string job;           // its run of `fragtrace run`; empty = none
    std::uint64_t events = 0;  // includes events in the ring
    std::uint64_t events_lost = 0;
    ProcessEnd end;
    // When the process exited, since the start of the trace. nullopt: not known, or it did not
    // exit.
    std::optional<std::uint64_t> end_ns;
    KilledBetween killed;  // of a killed process: bounds of its end
    // A snapshot of the pool at one moment, without a history.
    bool state_only = false;
    bool snapshot = false;  // of PyTorch's allocator; its process is not known
    std::string import;     // format of an imported recording, such as "RMM log"; empty = none
    bool damaged = false;   // or cut off; events after the damage are not counted
};

// Errors (kInput): as read_trace().
Result<TraceOutline> read_outline(const std::string& path);

}  // namespace fragtrace::analyzer
