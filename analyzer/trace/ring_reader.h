// Reads the ring of a process that is running or ended without marking the end. The ring has the
// events that are missing in the trace file.
//
// A ring is untrusted, like a trace: every offset and count is checked before use.
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
    std::string path;    // searched path; empty: the recorder had no ring file

    RingHeader header = {};
    std::vector<EventRecord> events;  // complete events in (tail, head], ascending
    std::uint64_t events_unfinished = 0;
    std::vector<StackNode> nodes;               // all nodes in use, including the root
    std::vector<std::uint8_t> codes;            // all code records in use
    std::string facts;                          // all fact lines in use
    std::map<std::string, std::string> losses;  // as the recorder's facts, with kAliveFact
    std::optional<InputFile> file;              // kRead: the file that was read

    // The recorder had a ring file, which does not exist any more.
    [[nodiscard]] bool lost() const { return state == State::kAbsent && !path.empty(); }
};

// Looks first at the path where the recorder had the ring, then in the folder of the trace, because
// both files may have been copied. If `process_runs` is true, the ring may change while it is read;
// only events that did not change are returned.
RingContents read_ring(const std::string& trace_path, const TraceHeader& trace, bool process_runs);

// The content of the ring that is missing in the trace file, ready to be appended to it.
struct RingSurplus {
    std::vector<EventRecord> events;
    std::uint32_t first_node = 0;  // ring nodes from this one on are missing in the file
    std::vector<std::uint8_t> codes;
    std::uint32_t code_count = 0;
    std::string facts;  // lines that are not in the file
};

// Adds the ring's stacks, the code that they refer to, and its facts to the builder. Returns the
// surplus without events.
RingSurplus add_ring_tables(const RingContents& ring, TimelineBuilder* builder);

// Adds the ring's surplus to the builder and returns it.
RingSurplus add_ring(const RingContents& ring, TimelineBuilder* builder);

}  // namespace fragtrace::analyzer
