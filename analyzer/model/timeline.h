// A whole trace in memory, normalised. It is the only input of everything above trace/.
//
// Plain data, immutable once read, safe to share between threads. Ids are dense, allocs and frees
// are paired, and nothing here depends on how the trace was stored.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/model/event_table.h"
#include "analyzer/model/sparse_column.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// One frame of a stack, symbolised.
struct Frame {
    enum class Kind : std::uint8_t { kNative, kPython };
    Kind kind = Kind::kNative;
    std::string function;  // demangled; "0x7f..." when unknown
    std::string file;      // source file, empty when unknown
    std::uint32_t line = 0;
    std::string module;  // native: path of the shared object
};

// The origin of an event: its thread and stacks. Stack nodes index Timeline::nodes.
struct Origin {
    std::uint32_t thread = 0;
    std::uint32_t native_stack = 0;
    std::uint32_t python_stack = 0;
    // Fact "text.N": the program's label for the block; 0 = no label.
    std::uint32_t label = 0;

    auto operator<=>(const Origin&) const = default;
};

// The code of a frame that was recorded by name: a Python frame, or a native frame in a memory
// snapshot of PyTorch. The file of a native frame is its source file. If that is not known, it is
// the module, and the line is an offset in the module.
struct PythonCode {
    std::string function;
    std::string file;
    std::uint32_t first_line = 0;
    bool native = false;
};

struct Module {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t bias = 0;
    std::string path;
    std::string build_id;  // hexadecimal
};

// A pool that events refer to by number. Number 0 is the default pool and has no identity.
struct PoolIdentity {
    enum class Owner : std::uint8_t { kUnknown, kPytorch, kCuda, kProgram };
    Owner owner = Owner::kUnknown;
    // kPytorch: both halves of the id. kCuda: the handle, and 0. kProgram: 0.
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::string text;         // the fact "pool.N"
    bool no_split = false;    // kPytorch: a request always gets a whole block
    bool use_on_oom = false;  // kPytorch: other pools may use its free blocks before an OOM
    bool captured = false;    // kPytorch: the recorder saw a capture allocate from it
    std::string kind = {};    // kProgram: "rmm-pool", "bfc", ... or "other", as the program says
    std::string name = {};    // kProgram, kPytorch: as the program says; may be empty
    std::uint64_t limit_bytes = 0;  // kProgram: the last limit; 0 = none, ~0 = it changed too often

    // PyTorch numbers a pool that a capture creates for itself (n, 0). MemPool objects and
    // torch.cuda.graph_pool_handle() share the numbers (0, n), and captures may use either kind.
    [[nodiscard]] bool made_by_capture() const {
        return owner == Owner::kPytorch && first != 0 && second == 0;
    }

    [[nodiscard]] bool is_graph() const { return captured || made_by_capture(); }
};

// A named range that was marked with mark.h, NVTX or a notebook's cell.
struct Phase {
    std::uint32_t name = 0;  // number N of the fact "text.N"
    RangeKind kind = RangeKind::kApi;
    std::uint32_t thread = 0;  // the thread that began it
    std::uint32_t depth = 0;   // open ranges around it on its thread
    EventIndex begin = 0;      // the kRangeBegin event
    EventIndex end = 0;        // the kRangeEnd event, or the number of events
};

// Events [begin, end]; `end` is the number of events if the trace ends first.
struct EventSpan {
    EventIndex begin = 0;
    EventIndex end = 0;
};

// A span in which recording was stopped. The sums compare the checkpoint after the span with the
// state before it: blocks, or device allocations if there is no pool.
struct RecordingGap {
    EventIndex begin = 0;
    EventIndex end = 0;
    std::uint64_t freed = 0;  // live when the span begins, not when it ends
    std::uint64_t freed_bytes = 0;
    std::uint64_t made = 0;  // live when the span ends, not when it begins
    std::uint64_t made_bytes = 0;
    // Events in this span that were recorded, but not read (trace/window_reader.h). 0 = recording
    // was stopped.
    std::uint64_t left_out = 0;
};

// kContinued: the recording went on in another file, or this file is a copy of a part of a
// recording.
enum class Ending {
    kNormal,
    kQuickExit,
    kExec,
    kKilled,  // the process has ended, and its trace has no end
    kRunning,
    kContinued,
    kNotRecorded  // the trace has no end: the process was killed, or still runs elsewhere
};

// Data that was lost or could not be read; every result prints it.
struct TraceDamage {
    std::uint64_t events_lost = 0;       // counted by the recorder
    std::uint64_t bytes_unreadable = 0;  // skipped in the file
    std::uint64_t chunks_unreadable = 0;
    std::uint64_t events_unfinished = 0;    // started in the ring, never completed (process died)
    std::uint64_t frees_without_alloc = 0;  // pairing
    std::uint64_t allocs_over_live = 0;     // pairing: the address was still allocated
    std::uint64_t after_gap = 0;     // pairing: as the two above, but caused by a gap in recording
    std::vector<std::string> notes;  // one line each
};

struct Timeline {
    // Where the trace came from.
    std::string path;
    std::map<std::string, std::string> facts;  // docs/trace-format.md lists the keys
    std::uint64_t start_unix_ns = 0;
    std::uint32_t pid = 0;
    int rank = -1;
    Ending ending = Ending::kNotRecorded;
    TraceDamage damage;

    // Events, in sequence order.
    EventTable events;
    std::uint64_t events_in_file = 0;  // if only a part was read: of all; otherwise 0
    // The free of each alloc and the alloc of each free, in both layers; also map/unmap,
    // reserve/free and create/release. kNoEvent if there is none.
    ChunkedVector<EventIndex> partner;
    // Nanoseconds spent in the real call, if measured; ascending by event.
    std::vector<std::pair<EventIndex, std::uint32_t>> durations;
    // The number of the pool that an event belongs to; 0 is the default pool.
    SparseColumn event_pools;
    std::map<std::uint32_t, PoolIdentity> pools;  // what pool numbers mean, if known

    // The recorder's gaps and checkpoints, in ascending order. A gap has no events. A checkpoint
    // lists the allocations that were live when a trace began in mid-run, or when recording
    // resumed. A checkpoint after a gap repeats allocations from before the gap; all events in it
    // have the time of the gap's end.
    std::vector<RecordingGap> gaps;
    std::vector<EventSpan> checkpoints;
    std::vector<Phase> phases;  // in the order in which they began

    // Tables.
    std::vector<std::uint64_t> streams;  // raw handle per StreamId
    std::vector<Origin> origins;         // per OriginId; [0] is "unknown"
    std::vector<StackNode> nodes;        // the stack tree; [0] is the root
    std::vector<PythonCode> codes;       // per Python code id
    std::vector<Module> modules;         // as recorded; a later module replaces an earlier one

    [[nodiscard]] std::uint64_t recorded_events() const {
        return events_in_file == 0 ? events.size() : events_in_file;
    }

    // Without the repeated ones of checkpoints between pieces.
    [[nodiscard]] std::uint64_t events_read() const {
        std::uint64_t count = recorded_events();
        for (const RecordingGap& gap : gaps) {
            count -= gap.left_out;
        }
        return count;
    }

    [[nodiscard]] std::string fact(const std::string& key,
                                   const std::string& otherwise = {}) const {
        const auto found = facts.find(key);
        return found == facts.end() ? otherwise : found->second;
    }
};

// The text for a number of a phase, a call or settings; "text N" if the text is missing.
inline std::string text_of(const Timeline& timeline, std::uint64_t number) {
    return timeline.fact("text." + std::to_string(number), "text " + std::to_string(number));
}

}  // namespace fragtrace::analyzer
