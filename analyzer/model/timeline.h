// A whole trace in memory, normalised: the only input of everything above trace/.
//
// Plain data, immutable once read, safe to share between threads. Ids are dense; alloc and free
// are paired; nothing here depends on how the trace was stored.
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

// Where an event came from. Stack nodes index Timeline::nodes.
struct Origin {
    std::uint32_t thread = 0;
    std::uint32_t native_stack = 0;
    std::uint32_t python_stack = 0;
    std::uint32_t label = 0;  // fact "text.N": what the program said of the block; 0 = nothing

    auto operator<=>(const Origin&) const = default;
};

// The code of a frame that was recorded by name: Python's, and in memory snapshots of PyTorch that
// of native frames, whose file is their source or, where that is not known, their module. Then the
// line is an offset in it.
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

// A pool that events name by a number other than 0, the default pool's.
struct PoolIdentity {
    enum class Owner : std::uint8_t { kUnknown, kPytorch, kCuda };
    Owner owner = Owner::kUnknown;
    std::uint64_t first = 0;  // kPytorch: both halves of the id; kCuda: the handle, 0
    std::uint64_t second = 0;
    std::string text;         // the fact "pool.N"
    bool no_split = false;    // kPytorch: a request takes a whole block
    bool use_on_oom = false;  // kPytorch: its free blocks serve others before an OOM
    bool captured = false;    // kPytorch: the recorder saw a capture allocate from it

    // PyTorch numbers the pools that captures make for themselves (n, 0). MemPool objects and
    // torch.cuda.graph_pool_handle() share the numbers (0, n), and captures may use either.
    [[nodiscard]] bool made_by_capture() const {
        return owner == Owner::kPytorch && first != 0 && second == 0;
    }

    [[nodiscard]] bool is_graph() const { return captured || made_by_capture(); }
};

// A named range of the program's own: mark.h, NVTX, a notebook's cell.
struct Phase {
    std::uint32_t name = 0;  // fact "text.N"
    RangeKind kind = RangeKind::kApi;
    std::uint32_t thread = 0;  // that began it
    std::uint32_t depth = 0;   // open ranges of that thread around it
    EventIndex begin = 0;      // its kRangeBegin
    EventIndex end = 0;        // its end, or the number of events
};

// Events [begin, end]; `end` is the number of events where the trace ends first.
struct EventSpan {
    EventIndex begin = 0;
    EventIndex end = 0;
};

// A span in which recording was stopped, and what a checkpoint behind it tells of it: blocks, or
// device allocations where there is no pool.
struct RecordingGap {
    EventIndex begin = 0;
    EventIndex end = 0;
    std::uint64_t freed = 0;  // were held at its begin, are not any more
    std::uint64_t freed_bytes = 0;
    std::uint64_t made = 0;  // are held at its end, were not at its begin
    std::uint64_t made_bytes = 0;
};

// kContinued: the recording went on in another file, or this is a copy of a part of it.
enum class Ending { kNormal, kQuickExit, kExec, kKilled, kRunning, kContinued };

// What was lost or could not be read, always printed with a result.
struct TraceDamage {
    std::uint64_t events_lost = 0;       // counted by the recorder
    std::uint64_t bytes_unreadable = 0;  // skipped in the file
    std::uint64_t chunks_unreadable = 0;
    std::uint64_t events_unfinished = 0;    // claimed in the ring, never completed (process died)
    std::uint64_t frees_without_alloc = 0;  // pairing
    std::uint64_t allocs_over_live = 0;     // pairing: the address was still handed out
    std::uint64_t after_gap = 0;  // pairing: as the two above, but follows from a gap in recording
    std::vector<std::string> notes;  // one line each
};

struct Timeline {
    // Source.
    std::string path;
    std::map<std::string, std::string> facts;  // docs/trace-format.md lists the keys
    std::uint64_t start_unix_ns = 0;
    std::uint32_t pid = 0;
    int rank = -1;
    Ending ending = Ending::kKilled;
    TraceDamage damage;

    // Events, in sequence order.
    EventTable events;
    // For an alloc its free, for a free its alloc (both layers, and map/unmap, reserve/free,
    // create/release); kNoEvent when there is none.
    ChunkedVector<EventIndex> partner;
    // Nanoseconds spent in the real call, where measured; ascending by event.
    std::vector<std::pair<EventIndex, std::uint32_t>> durations;
    // The number of the pool that an event belongs to; 0 is the default one.
    SparseColumn event_pools;
    std::map<std::uint32_t, PoolIdentity> pools;  // what the numbers mean, where known

    // What the recorder did, ascending. Nothing is told of a gap; between the two events of a
    // checkpoint stands what was held when the trace began, or went on, in mid-life. One behind a
    // gap repeats what was allocated before it; the times of these are that of the gap's end.
    std::vector<RecordingGap> gaps;
    std::vector<EventSpan> checkpoints;
    std::vector<Phase> phases;  // in the order in which they began

    // Tables.
    std::vector<std::uint64_t> streams;  // raw handle per StreamId
    std::vector<Origin> origins;         // per OriginId; [0] is "unknown"
    std::vector<StackNode> nodes;        // the stack tree; [0] is the root
    std::vector<PythonCode> codes;       // per Python code id
    std::vector<Module> modules;         // in the order recorded; a later one covers an earlier

    [[nodiscard]] std::string fact(const std::string& key,
                                   const std::string& otherwise = {}) const {
        const auto found = facts.find(key);
        return found == facts.end() ? otherwise : found->second;
    }
};

// The text that a number of a phase, a call or settings stands for; "text N" when it is missing.
inline std::string text_of(const Timeline& timeline, std::uint64_t number) {
    return timeline.fact("text." + std::to_string(number), "text " + std::to_string(number));
}

}  // namespace fragtrace::analyzer
