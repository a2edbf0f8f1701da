// The steps of private pools (MemPool objects, captured graphs): when a pool is in use, when it is
// reset to a checkpoint, and where its restored blocks lay before.
#pragma once

#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/timeline.h"
#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {

// Adds steps to a script. Events of a timeline must be passed in order.
class PrivatePoolSteps {
  public:
    PrivatePoolSteps(const Timeline& timeline, ReplayScript* script)
        : timeline_(timeline),
          script_(*script),
          records_captures_(timeline.fact("torch.captures") == "recorded") {}

    // Call this first for each event.
    void look_at(EventKind kind, EventIndex i) {
        pool_ = timeline_.event_pools.at(i, &cursor_);
        rewinding_ = rewinding_ && kind == EventKind::kBlockAlloc;
    }

    // The pool of the current event; 0 = the default pool.
    [[nodiscard]] std::uint32_t pool() const { return pool_; }

    // use(): the pool has a user from this event on. give_up(): it has lost its last user.
    void use(EventIndex i) { set(pool_, i, false); }

    void give_up(EventIndex i) { set(pool_, i, true); }

    // Registers the pool of a request. A pool that appears for the first time has a user. A pool
    // from which a capture allocates belongs to a graph from then on.
    void know(const Event& event, EventIndex i);

    // The program called empty_cache().
    void empty_cache(const Event& event, EventIndex i);

    // The pool was reset to a checkpoint: all its blocks are freed. The block allocations that
    // follow list its restored blocks.
    void rewind(EventIndex i);

    // `step` allocates the block of event `i`, unless the request failed. If the pool was reset to
    // a checkpoint, `step` becomes kPlace, which restores the block at its former place.
    void allocate(const Event& event, EventIndex i, bool failed, Step* step) {
        step->in_capture = is_in_capture(event);
        if (pool_ != 0 && !failed) {
            held_[pool_].insert(i);
            place_again(event, i, step);
        }
    }

    void release(BlockId block) {
        if (held_.empty()) {
            return;
        }
        if (const auto held = held_.find(timeline_.event_pools.at(block)); held != held_.end()) {
            held->second.erase(block);
        }
    }

    // Processes the live blocks of a trace checkpoint. The caller has already added its step.
    void adopt(const HeapSnapshot& heap, EventIndex checkpoint);

  private:
    struct LastBlock {
        BlockId block = kNoEvent;
        std::uint64_t requested_bytes = 0;
        StreamId stream = kNoStream;
    };

    void set(std::uint32_t pool, EventIndex i, bool freeable);
    [[nodiscard]] PoolIdentity identity(std::uint32_t pool) const;
    [[nodiscard]] bool is_in_capture(const Event& event) const;

    void know(std::uint32_t pool, EventIndex i) {
        if (pool != 0 && !known_.contains(pool)) {
            set(pool, i, false);
        }
    }

    void place_again(const Event& event, EventIndex i, Step* step);

    const Timeline& timeline_;
    ReplayScript& script_;
    const bool records_captures_;
    std::uint32_t pool_ = 0;
    std::size_t cursor_ = 0;
    bool rewinding_ = false;
    std::set<std::uint32_t> known_;
    std::set<std::uint32_t> captured_;  // pools from which captures have allocated
    std::set<std::uint32_t> freeable_;
    std::unordered_map<std::uint32_t, std::set<BlockId>> held_;  // live blocks per pool
    // Key: address and block size in bytes.
    std::map<std::pair<DeviceAddress, std::uint64_t>, LastBlock> last_at_;
};

}  // namespace fragtrace::analyzer
