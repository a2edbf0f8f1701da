// Observes a pool and checks it with separate bookkeeping that shares no code with the pools: who
// owns each byte, the sums of the segments, and which blocks wait for which streams.
//
// Only the first violation is recorded. Nothing is checked after it. Not thread-safe.
#pragma once

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/validation/live_bytes.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

class PlacementCheck {
  public:
    PlacementCheck(StreamRule streams, std::uint64_t capacity_bytes)
        : streams_(streams), capacity_bytes_(capacity_bytes) {}

    // Call these after each call of the corresponding function of the pool.
    void allocated(const Request& request, const AllocateResult& result, Pool& pool);
    void released(BlockId block, const std::vector<Pool::PendingOn>& pending, Pool& pool);
    void completed(PendingId pending);
    // Call after empty_cache and empty_private_pool, which wait for the device.
    void emptied(Pool& pool);
    // Call for a block that the pool created in another way (adopt, allocate_at).
    void placed(const Request& request, Pool& pool);
    void adopted(const HeapSnapshot& heap, Pool& pool);

    // Compares the bookkeeping with the pool's statistics and address map.
    void compare(const Pool& pool);

    // The first violation, in one line; empty = none so far.
    [[nodiscard]] const std::string& violation() const { return violation_; }

    [[nodiscard]] std::uint64_t placements() const { return placements_; }

    [[nodiscard]] std::uint64_t comparisons() const { return comparisons_; }

  private:
    struct Block {
        Placement place;
        std::uint64_t requested_bytes = 0;
        StreamId stream = 0;
        std::size_t waits_for = 0;  // number of events; pending if not 0
    };

    void report(std::string what);
    void take(const Request& request, const Placement& place, const Pool& pool);
    void forget(BlockId id);
    void all_complete();
    void follow_driver(Pool& pool);
    void compare_sums(const PoolStatistics& statistics);
    void compare_segment(const HeapSnapshot& heap, const HeapSegment& segment);
    void compare_block(const HeapSegment& segment, const HeapBlock& block);

    StreamRule streams_;
    std::uint64_t capacity_bytes_;
    std::unordered_map<BlockId, Block> blocks_;
    std::unordered_map<std::uint32_t, LiveBytes> segments_;
    std::unordered_map<std::uint32_t, StreamId> segment_streams_;
    std::unordered_map<PendingId, std::vector<BlockId>> waiting_;
    std::uint64_t requested_bytes_ = 0;  // of live blocks
    std::uint64_t allocated_bytes_ = 0;
    std::uint64_t pending_bytes_ = 0;
    std::uint64_t reserved_bytes_ = 0;
    std::size_t pending_blocks_ = 0;
    std::uint64_t placements_ = 0;
    std::uint64_t comparisons_ = 0;
    std::string violation_;
};

}  // namespace fragtrace::analyzer
