// What a trace is, without its events: enough to list hundreds of them at once.
//
// Reads the header, the headers of the chunks, facts and end. The ring of a process that left no
// end is looked at, never absorbed.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"
#include "analyzer/trace/process_end.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

struct TraceOutline {
    std::string path;
    std::uint32_t pid = 0;
    std::int32_t rank = -1;  // -1 = none
    std::uint32_t part = 0;  // of a recording in parts; 0 = no parts, or a copy
    std::uint64_t start_unix_ns = 0;
    std::string command_line;  // empty = unknown
    std::string job;           // the run of `fragtrace run` that it belongs to; empty = none
    std::uint64_t events = 0;  // those that wait in the ring included
    std::uint64_t events_lost = 0;
    ProcessEnd end;
    // Of a snapshot: the pool at one moment, without a history.
    bool state_only = false;
    bool snapshot = false;  // of PyTorch's allocator: the process is not known
    bool damaged = false;   // events behind the damage are not counted
};

// Errors (kInput) as of read_trace().
Result<TraceOutline> read_outline(const std::string& path);

}  // namespace fragtrace::analyzer
