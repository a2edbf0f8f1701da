// Pools of the program's own (fragtrace_pool_create): what each held, how its memory was
// fragmented, and what a simulated pool of the same kind would reserve. docs/program-pools.md
// describes the figures.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The memory in which a pool's blocks lie.
enum class PoolMemory : std::uint8_t {
    kDevice,
    kManaged,
    kHost,     // pinned
    kUnknown,  // in no memory that was recorded: segments and free memory are unknown
};

// A pool at one moment.
struct ProgramPoolMoment {
    EventIndex event = kNoEvent;        // kNoEvent = there was no such moment
    std::uint64_t requested_bytes = 0;  // of the failed request; 0 = no request failed here
    std::uint64_t reserved_bytes = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t largest_free_bytes = 0;
    std::vector<HeldBy> lines = {};  // that hold the blocks: at most ten, most bytes first

    [[nodiscard]] std::uint64_t free_bytes() const { return reserved_bytes - allocated_bytes; }
};

// The same requests, served by a simulated pool. For the pool's own kind the settings are those
// that the program reported. Otherwise they are the defaults, and the size of the first segment as
// initial size.
struct ProgramPoolReplay {
    std::string pool;
    std::uint64_t peak_reserved_bytes = 0;
};

// How well a replay with the pool's own kind and settings matches the recording.
struct ProgramPoolFidelity {
    std::uint64_t placements = 0;        // recorded allocations of blocks, and failed requests
    std::uint64_t placements_equal = 0;  // replayed in the same segment at the same offset, or fail
    std::uint64_t segments = 0;          // in which the pool had a block
    std::uint64_t segments_equal = 0;    // replayed with the same size, in order
    std::string reason;                  // the first difference; empty if everything is equal
    std::string not_judged;              // why the replay cannot be compared

    [[nodiscard]] bool exact() const {
        return not_judged.empty() && placements == placements_equal && segments == segments_equal;
    }
};

// A setting of the framework to which the pool belongs, tried in a replay.
struct ProgramPoolRemedy {
    std::string setting;       // "TF_GPU_ALLOCATOR=cuda_malloc_async"
    std::uint64_t failed = 0;  // requests that fail in the replay
    std::uint64_t served = 0;  // recorded failures that the replay serves
    bool at_least = false;     // the replay shows the best case
};

// A pool in one kind of memory of one device. A pool that uses several has one entry for each.
struct ProgramPool {
    std::uint32_t number = 0;
    std::string name;
    std::string kind;               // as the program says: "rmm-pool", "other"
    std::uint64_t limit_bytes = 0;  // the last one; 0 = none, ~0 = unknown: changed too often
    std::string settings;           // of the simulated pool of this kind; empty = not reported
    PoolMemory memory = PoolMemory::kUnknown;
    DeviceId device = kUnknownDevice;

    std::uint64_t allocations = 0;
    std::uint64_t peak_allocated_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;  // 0 if the memory is unknown
    ProgramPoolMoment at_peak;              // the first peak of allocated memory
    // Requests that the pool itself could not serve, of all memory of the pool: the count, and the
    // first ones.
    std::uint64_t failed = 0;
    std::vector<ProgramPoolMoment> failures;
    // When the device ran out of memory: the first times.
    std::vector<ProgramPoolMoment> at_out_of_memory;
    std::uint64_t live_bytes = 0;  // at the end
    std::uint64_t live_blocks = 0;
    // Blocks of other pools lay in the same memory: free memory is then an upper bound.
    bool shares_memory = false;
    std::vector<ProgramPoolReplay> replays;
    std::optional<ProgramPoolFidelity> fidelity;  // only if the settings are known
    std::vector<ProgramPoolRemedy> remedies;      // only after a failed request
};

// `out_of_memory`: out-of-memories of devices, ascending by event.
std::vector<ProgramPool> find_program_pools(
    const Timeline& timeline,
    const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory,
    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
