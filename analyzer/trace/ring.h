// The ring of a process that ended without saying so, or that still runs: what its trace file
// lacks is read from it.
//
// A ring is untrusted like a trace: every offset and count is checked before use.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/support/input_file.h"
#include "analyzer/trace/builder.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct RingContents {
    enum class State { kAbsent, kRead, kIgnored };
    State state = State::kAbsent;
    std::string reason;  // kIgnored: why
    std::string path;    // where it was looked for; empty: the recorder had no ring file

    RingHeader header = {};
    std::vector<EventRecord> events;  // whole ones of (tail, head], ascending
    std::uint64_t events_unfinished = 0;
    std::vector<StackNode> nodes;               // all nodes in use, the root included
    std::vector<std::uint8_t> codes;            // all code records in use
    std::string facts;                          // all fact lines in use
    std::map<std::string, std::string> losses;  // as the recorder's facts
    std::optional<InputFile> file;              // kRead: the file that all this was read from
};

// Looks where the recorder had the ring, then beside the trace: somebody may have copied both
// files. `process_runs`: the ring may change while it is read; only events that stayed are given.
RingContents read_ring(const std::string& trace_path, const TraceHeader& trace, bool process_runs);

// What is in the ring but not in the trace file, ready to be appended to it.
struct RingSurplus {
    std::vector<EventRecord> events;
    std::uint32_t first_node = 0;  // ring nodes from here on are missing in the file
    std::vector<std::uint8_t> codes;
    std::uint32_t code_count = 0;
    std::string facts;  // lines that were not written yet
};

// Adds the ring's surplus to the builder and gives it.
RingSurplus add_ring(const RingContents& ring, TimelineBuilder* builder);

}  // namespace fragtrace::analyzer
