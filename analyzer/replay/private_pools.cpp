#include "analyzer/replay/private_pools.h"

namespace fragtrace::analyzer {

PoolIdentity PrivatePoolSteps::identity(std::uint32_t number) const {
    const auto found = timeline_.pools.find(number);
    return found != timeline_.pools.end() ? found->second : PoolIdentity{};
}

void PrivatePoolSteps::know(const Event& event, EventIndex i) {
    know(pool_, i);
    const bool of_graph = event.kind == EventKind::kBlockAlloc && (event.flags & kFlagOfGraph) != 0;
    if (of_graph && pool_ != 0 && captured_.insert(pool_).second) {
        set(pool_, i, false);
    }
}

// If the recorder did not record captures, assume that a pool created by a capture serves only
// captures.
bool PrivatePoolSteps::is_in_capture(const Event& event) const {
    if (records_captures_) {
        return (event.flags & kFlagInCapture) != 0;
    }
    return pool_ != 0 && (script_.rules.routing_is_capture || identity(pool_).made_by_capture());
}

// During a capture, empty_cache() releases only private pools without users. Before 2.13 it fails.
void PrivatePoolSteps::empty_cache(const Event& event, EventIndex i) {
    const auto add = [this, i](std::uint32_t pool) {
        script_.steps.push_back(
            {.kind = Step::Kind::kEmptyCache, .event = i, .private_pool = pool});
    };
    if (!records_captures_ || (event.flags & kFlagInCapture) == 0) {
        add(pool_);
    } else if (!script_.rules.routing_is_capture) {
        for (const std::uint32_t pool : freeable_) {
            add(pool);
        }
    }
}

void PrivatePoolSteps::rewind(EventIndex i) {
    if (pool_ == 0) {
        return;
    }
    ++script_.rewinds;
    rewinding_ = true;
    std::set<BlockId>& held = held_[pool_];
    for (const BlockId block : held) {
        Step step{.kind = Step::Kind::kRelease, .event = i, .block = block};
        step.first_pending = static_cast<std::uint32_t>(script_.pending.size());
        script_.steps.push_back(step);
    }
    held.clear();
}

void PrivatePoolSteps::adopt(const HeapSnapshot& heap, EventIndex checkpoint) {
    held_.clear();
    for (const HeapSegment& segment : heap.segments) {
        if (identity(segment.private_pool).captured) {
            captured_.insert(segment.private_pool);
        }
        know(segment.private_pool, checkpoint);
    }
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            const std::uint32_t pool = timeline_.event_pools.at(block.allocated_by);
            if (pool != 0) {
                held_[pool].insert(block.allocated_by);
                last_at_[{block.address, block.size_bytes}] = {
                    block.allocated_by, block.requested_bytes, kNoStream};
            }
        }
    }
}

void PrivatePoolSteps::set(std::uint32_t number, EventIndex i, bool freeable) {
    if (number == 0) {
        return;
    }
    const PoolIdentity pool = identity(number);
    const bool graph = captured_.contains(number) || pool.made_by_capture();
    known_.insert(number);
    if (freeable) {
        freeable_.insert(number);
    } else {
        freeable_.erase(number);
    }
    script_.steps.push_back({.kind = Step::Kind::kPoolOptions,
                             .event = i,
                             .private_pool = number,
                             .value = (freeable ? kPoolFreeable : 0) | (graph ? kPoolOfGraph : 0) |
                                      (pool.no_split ? kPoolNoSplit : 0) |
                                      (pool.use_on_oom ? kPoolUseOnOom : 0)});
}

// Finds which earlier block a restored block was, and its requested size. Other blocks may have
// started at the same address since, so the size must match, too.
void PrivatePoolSteps::place_again(const Event& event, EventIndex i, Step* step) {
    LastBlock& former = last_at_[{event.address, event.extra}];
    if (rewinding_) {
        step->kind = Step::Kind::kPlace;
        step->placed_as = former.block;
        if (step->value == kUnknown64 && former.block != kNoEvent) {
            step->value = former.requested_bytes;
        }
        if (step->stream == kNoStream) {  // the segment's stream, which does not change
            step->stream = former.stream;
        }
    }
    former = {i, step->value, step->stream};
}

}  // namespace fragtrace::analyzer
