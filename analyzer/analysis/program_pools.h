// Pools of the program's own (fragtrace_pool_create): what each held, how its memory was
// fragmented, and what a simulated pool of the same kind would reserve. docs/program-pools.md
// describes the figures.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/fidelity.h"
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

// Why a pool could not serve a request.
enum class PoolFailure : std::uint8_t {
    kUnknown,     // the memory of the pool, or the size of the request, is unknown
    kNoBlockYet,  // unknown: the pool has not had a block in its memory yet
    kShared,      // unknown: other pools use the same memory
    kTooLittle,   // less is free than was requested, up to the limit of the pool
    kFragmented,  // enough is free, but no range is large enough
    kRefused,     // a range is large enough: the pool's own rules refused the request
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
    PoolFailure failure = PoolFailure::kUnknown;  // if a request failed here
    // kFragmented: the line with the fewest bytes without whose blocks a free range would be large
    // enough, and this range. 0 bytes: no single line is enough.
    HeldBy culprit = {};
    std::uint64_t without_culprit_bytes = 0;
    // The allocation of the oldest live block: of the culprit, else of the pool. kNoEvent = none.
    EventIndex oldest = kNoEvent;

    [[nodiscard]] std::uint64_t free_bytes() const { return reserved_bytes - allocated_bytes; }
};

// The same requests, served by a simulated pool. Its settings are those of the recorded pool, as
// far as they are known: the limit, and the size of the first segment as initial size.
struct ProgramPoolReplay {
    std::string pool;
    std::string config = {};  // empty: the defaults
    std::uint64_t peak_reserved_bytes = 0;
    bool exact = false;  // the replay equals the recording; otherwise the peak is an estimate
};

// A change that could have let the first failed request of a pool succeed, tried by a replay.
struct ProgramPoolRemedy {
    // Whether this request and all before it are served. kPerhaps: only in the better one of two
    // bounds, between which the pool lies.
    enum class Serves : std::uint8_t { kNo, kPerhaps, kYes };

    std::string change;  // in the terms of the program's framework
    std::string pool;    // the simulated pool of the replay, and its settings
    std::string config = {};
    std::uint64_t limit_bytes = 0;  // the larger limit that the pool gets; 0 = it gets none
    Serves serves = Serves::kNo;
    std::uint64_t failed = 0;  // requests of the whole run that fail
    std::uint64_t peak_reserved_bytes = 0;
};

// A pool in one kind of memory of one device. A pool that uses several has one entry for each.
struct ProgramPool {
    std::uint32_t number = 0;
    std::string name;
    std::string kind;               // as the program says: "rmm-pool", "other"
    std::uint64_t limit_bytes = 0;  // the last one; 0 = none, ~0 = unknown: changed too often
    std::string settings;           // of the simulated pool of this kind; empty = not recorded
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
    // How well the simulated pool of this kind agrees with the recording; nullopt: there is none.
    std::optional<Fidelity> fidelity;
    // If the first failed request failed by fragmentation or by the pool's rules.
    std::vector<ProgramPoolRemedy> remedies;
    // The memory that they may use: the limit, or the most that the pool had reserved before.
    std::uint64_t remedy_bytes = 0;

    [[nodiscard]] bool is_limited() const { return limit_bytes != 0 && limit_bytes != kUnknown64; }
};

// `out_of_memory`: out-of-memories of devices, ascending by event.
std::vector<ProgramPool> find_program_pools(
    const Timeline& timeline,
    const std::vector<std::pair<EventIndex, DeviceId>>& out_of_memory,
    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
