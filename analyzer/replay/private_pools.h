// The steps of private pools: MemPool objects, captured graphs. Which are used, which are set back
// to a checkpoint, and where the blocks lay that such a pool then holds again.
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

// Adds to a script while the events of a timeline are looked at one after the other.
class PrivatePoolSteps {
  public:
    PrivatePoolSteps(const Timeline& timeline, ReplayScript* script)
        : timeline_(timeline),
          script_(*script),
          records_captures_(timeline.fact("torch.captures") == "recorded") {}

    // Before anything else of an event.
    void look_at(EventKind kind, EventIndex i) {
        pool_ = timeline_.event_pools.at(i, &cursor_);
        rewinding_ = rewinding_ && kind == EventKind::kBlockAlloc;
    }

    // Of the event that is looked at; 0 = the default one.
    [[nodiscard]] std::uint32_t pool() const { return pool_; }

    // The pool has a user from here on, or has lost the last one.
    void use(EventIndex i) { set(pool_, i, false); }

    void give_up(EventIndex i) { set(pool_, i, true); }

    // A request of event `i`: a pool that is seen first has a user, and one from which a capture
    // allocates belongs to a graph from then on.
    void know(const Event& event, EventIndex i);

    // The program emptied the cache.
    void empty_cache(const Event& event, EventIndex i);

    // What the pool held is gone; what it holds now is told by the block allocs that follow.
    void rewind(EventIndex i);

    // `step` allocates the block of event `i`, or fails to, and becomes one that places it again
    // where the pool was set back.
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

    // What a checkpoint says is held; its step has been added.
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
    std::set<std::uint32_t> captured_;  // captures have allocated from them
    std::set<std::uint32_t> freeable_;
    std::unordered_map<std::uint32_t, std::set<BlockId>> held_;  // live blocks per pool
    // By address and bytes.
    std::map<std::pair<DeviceAddress, std::uint64_t>, LastBlock> last_at_;
};

}  // namespace fragtrace::analyzer
