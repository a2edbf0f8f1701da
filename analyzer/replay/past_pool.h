// Requests that PyTorch's allocator forwarded to the driver because caching was off
// (torch.cuda.memory.caching_allocator_enable). The pool does not know this memory. While it is
// allocated, the pool can use that much less of the card.
#pragma once

#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <map>
#include <unordered_set>

namespace fragtrace::analyzer {

// Adds the steps of such requests. Events of a timeline must be passed in order.
class PastPoolSteps {
  public:
    explicit PastPoolSteps(ReplayScript* script) : script_(*script) {}

    static bool is_one(const Event& event) {
        return event.kind == EventKind::kDeviceAlloc && (event.flags & kFlagPastPool) != 0;
    }

    void add(const Event& event, EventIndex i, StreamId stream) {
        held_[i] = event.size_bytes;
        script_.steps.push_back({.kind = Step::Kind::kPastPool,
                                 .stream = stream,
                                 .event = i,
                                 .block = i,
                                 .value = event.size_bytes});
    }

    // Event `i` frees allocation `alloc`. Ignored if `alloc` is not such a request.
    void end(EventIndex alloc, EventIndex i) {
        const auto held = held_.find(alloc);
        if (held != held_.end()) {
            script_.steps.push_back({.kind = Step::Kind::kPastPoolFree,
                                     .event = i,
                                     .block = alloc,
                                     .value = held->second});
            held_.erase(held);
        }
    }

    // Frees all such allocations at a checkpoint, because the checkpoint lists live ones again.
    void end_all(EventIndex checkpoint) {
        while (!held_.empty()) {
            end(held_.begin()->first, checkpoint);
        }
    }

  private:
    ReplayScript& script_;
    std::map<EventIndex, std::uint64_t> held_;  // bytes, by allocating event
};

// Bytes that such requests have allocated before a given step of the recorded run.
inline std::uint64_t past_pool_bytes(const ReplayScript& script, std::size_t step) {
    std::uint64_t held = 0;
    for (std::size_t i = 0; i < step; ++i) {
        const Step earlier = script.steps[i];
        if (earlier.kind == Step::Kind::kPastPool) {
            held += earlier.value;
        } else if (earlier.kind == Step::Kind::kPastPoolFree) {
            held -= earlier.value;
        }
    }
    return held;
}

// The memory of such requests in a replay.
class PastPool {
  public:
    explicit PastPool(Pool& pool) : pool_(pool) {}

    // Returns false if the device has too little free memory.
    bool take(const Step& step) {
        const bool taken = pool_.caches()
                               ? pool_.device().take(step.value)
                               : pool_.allocate(request_of(step)).outcome != Outcome::kOutOfMemory;
        if (taken) {
            held_.insert(step.block);
        }
        return taken;
    }

    void give_back(const Step& step) {
        if (held_.erase(step.block) == 0) {
            return;
        }
        if (pool_.caches()) {
            pool_.device().give_back(step.value);
        } else {
            pool_.release(step.block, {});
        }
    }

    [[nodiscard]] bool holds_any() const { return !held_.empty(); }

  private:
    Pool& pool_;
    std::unordered_set<BlockId> held_;
};

}  // namespace fragtrace::analyzer
