#include "analyzer/replay/private_pools.h"

namespace fragtrace::analyzer {

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
    const auto identity = timeline_.pools.find(number);
    const PoolIdentity pool = identity != timeline_.pools.end() ? identity->second : PoolIdentity{};
    known_.insert(number);
    script_.steps.push_back(
        {.kind = Step::Kind::kPoolOptions,
         .event = i,
         .private_pool = number,
         .value = (freeable ? kPoolFreeable : 0) | (pool.is_graph() ? kPoolOfGraph : 0) |
                  (pool.no_split ? kPoolNoSplit : 0) | (pool.use_on_oom ? kPoolUseOnOom : 0)});
}

// A block that a rewound pool holds again: which one it was before, and what was asked then.
// Other blocks may have begun at its address since: the one of its size is meant.
void PrivatePoolSteps::place_again(const Event& event, EventIndex i, Step* step) {
    LastBlock& former = last_at_[{event.address, event.extra}];
    if (rewinding_) {
        step->kind = Step::Kind::kPlace;
        step->placed_as = former.block;
        if (step->value == kUnknown64 && former.block != kNoEvent) {
            step->value = former.requested_bytes;
        }
        if (step->stream == kNoStream) {  // that of the segment, which goes on
            step->stream = former.stream;
        }
    }
    former = {i, step->value, step->stream};
}

}  // namespace fragtrace::analyzer
