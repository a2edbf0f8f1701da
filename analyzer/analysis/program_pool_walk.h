// The state of the program's own pools, event by event.
//
// A block lies in memory that is recorded already: inside a block of PyTorch's allocator, or else
// inside an allocation from the driver. This memory is a segment of the pool from the pool's first
// block in it until the memory is freed. Each mapping of memory that the program maps itself
// (cuMemMap) is one segment. A mapping directly behind another one in the same reservation makes
// that one larger: a pool that grows in place, such as ggml's, has blocks that lie in both.
#pragma once

#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The number that pools share when the recorder has no more numbers.
inline constexpr std::uint32_t kPoolOfTheRest = 1;

// Recorded memory in which blocks may lie.
struct PoolRegion {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    EventIndex allocated_by = kNoEvent;
    PoolMemory memory = PoolMemory::kDevice;
    DeviceId device = kUnknownDevice;
    std::set<std::uint32_t> users = {};  // numbers of pools with blocks in it, so far

    [[nodiscard]] DeviceAddress end() const { return address + size_bytes; }
};

struct ProgramPoolBlock {
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;
    EventIndex allocated_by = kNoEvent;
    EventIndex segment = kNoEvent;  // a key of ProgramPoolState::segments; kNoEvent = unknown

    [[nodiscard]] DeviceAddress end(DeviceAddress address) const { return address + size_bytes; }
};

struct ProgramPoolSegment {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    std::set<DeviceAddress> blocks = {};
    std::uint32_t index = kUnknown32;  // into ProgramPoolWalk::segments()

    [[nodiscard]] DeviceAddress end() const { return address + size_bytes; }
};

struct ProgramPoolState {
    std::map<DeviceAddress, ProgramPoolBlock> blocks;
    std::map<EventIndex, ProgramPoolSegment> segments;  // by the event that allocated them
    std::uint64_t allocated_bytes = 0;
    std::uint64_t reserved_bytes = 0;
    bool shares_memory = false;  // another pool has or had blocks in one of the segments
};

// Whether any pool of the program reported a block, or a request that failed.
bool has_program_blocks(const Timeline& timeline);

// The segments with their blocks and the free ranges between them. Blocks in unknown memory make
// segments of their own size.
HeapSnapshot snapshot_of(const ProgramPoolState& state);

class ProgramPoolWalk {
  public:
    struct Key {
        std::uint32_t number = 0;  // of the pool
        PoolMemory memory = PoolMemory::kUnknown;
        DeviceId device = kUnknownDevice;

        bool operator<(const Key& other) const {
            return std::tie(number, memory, device) <
                   std::tie(other.number, other.memory, other.device);
        }
    };

    // What happened to a pool in one event.
    struct Step {
        enum class Kind : std::uint8_t { kAlloc, kFree, kFailed, kSegmentFree, kStreamEnd };
        Kind kind = Kind::kAlloc;
        EventIndex event = kNoEvent;
        EventIndex alloc = kNoEvent;         // kAlloc, kFree: the event that allocated the block
        std::uint32_t segment = kUnknown32;  // kAlloc: index into segments(); kUnknown32 = none
    };

    // A segment, when the pool had its first block in it.
    struct SegmentOfPool {
        DeviceAddress address = 0;
        std::uint64_t size_bytes = 0;
        EventIndex allocated_by = kNoEvent;
    };

    // The timeline must outlive the walk.
    explicit ProgramPoolWalk(const Timeline& timeline) : timeline_(timeline) {}

    // Applies the next event.
    void advance();

    [[nodiscard]] EventIndex position() const { return position_; }

    [[nodiscard]] const std::map<Key, ProgramPoolState>& pools() const { return pools_; }

    // The pool to which the last event added a block; nullptr = none.
    [[nodiscard]] const std::pair<const Key, ProgramPoolState>* changed() const { return changed_; }

    // All allocations, frees and failed requests of a pool so far, and the frees of its segments. A
    // failed request counts for a pool with one part only: others do not show which part failed.
    [[nodiscard]] const std::vector<Step>& steps(const Key& key) const {
        return histories_.at(key).steps;
    }

    // All segments of a pool so far, in the order of their first blocks.
    [[nodiscard]] const std::vector<SegmentOfPool>& segments(const Key& key) const {
        return histories_.at(key).segments;
    }

    // Why no simulated pool can be compared with all steps of this one; empty = it can.
    [[nodiscard]] std::string_view not_comparable(const Key& key) const {
        return histories_.at(key).not_comparable;
    }

  private:
    void begin_region(std::map<DeviceAddress, PoolRegion>* regions,
                      const Event& event,
                      PoolMemory memory,
                      std::uint64_t size_bytes);
    void end_region(EventIndex alloc);
    void end_regions_of(EventIndex event);
    void map(const Event& event);
    void end_mappings(DeviceAddress address, std::uint64_t size_bytes);
    void resize(PoolRegion* region, std::uint64_t size_bytes);
    PoolRegion* region_of(DeviceAddress address, std::uint64_t size_bytes);
    void block_alloc(const Event& event);
    void block_free(EventIndex alloc);
    void request_failed(std::uint32_t number);
    void pool_end(std::uint32_t number);
    void checkpoint_begin();
    void reattach(PoolRegion* region, bool of_driver);

    // Calls visit(key, state) for each part of a pool: its memory may be of several kinds and
    // devices.
    template <typename Visit>
    void for_each_part(std::uint32_t number, Visit visit) {
        for (auto part = pools_.lower_bound(Key{.number = number, .memory = {}, .device = 0});
             part != pools_.end() && part->first.number == number;
             ++part) {
            visit(part->first, &part->second);
        }
    }

    void empty(const Key& key, ProgramPoolState* pool);
    void drop(const Key& key,
              ProgramPoolState* pool,
              std::map<DeviceAddress, ProgramPoolBlock>::iterator block);

    const Timeline& timeline_;
    EventIndex position_ = 0;
    std::size_t pool_cursor_ = 0;
    std::map<DeviceAddress, PoolRegion> driver_;           // memory from the driver
    std::map<DeviceAddress, PoolRegion> mapped_;           // memory that the program maps
    std::map<DeviceAddress, std::uint64_t> reservations_;  // their sizes
    std::map<DeviceAddress, PoolRegion> framework_;        // blocks of PyTorch's allocator
    // By the event that ends them: the events that allocated regions.
    std::unordered_map<EventIndex, std::vector<EventIndex>> ends_;
    std::map<Key, ProgramPoolState> pools_;
    std::set<Key> in_use_;  // pools that may have blocks or segments
    // During a checkpoint: the segments of before that have not been listed yet, with their pools.
    using SegmentPlace = std::tuple<bool, DeviceAddress, std::uint64_t>;  // of the driver, size
    std::map<SegmentPlace, std::vector<Key>> kept_;
    bool in_checkpoint_ = false;
    // Blocks (pool, address) that ended with their segment and were not freed: checkpoints list
    // them.
    std::set<std::pair<std::uint32_t, DeviceAddress>> ended_;

    struct History {
        std::vector<Step> steps = {};
        std::vector<SegmentOfPool> segments = {};
        bool ended = false;
        std::string_view not_comparable = {};
    };

    std::map<Key, History> histories_;
    std::unordered_map<EventIndex, Key> pool_of_block_;  // live blocks, by allocating event
    const std::pair<const Key, ProgramPoolState>* changed_ = nullptr;
};

}  // namespace fragtrace::analyzer
