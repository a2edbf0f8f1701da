// Counts the allocations and frees that happened while recording was stopped. It compares the
// allocations before a gap with the checkpoint after it.
#pragma once

#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Fills the sums of Timeline::gaps while the timeline is being paired.
class GapBalance {
  public:
    enum Layer { kDriver, kPool, kLayers };

    explicit GapBalance(Timeline* timeline) : timeline_(*timeline) {}

    // A checkpoint begins at this event. `driver` and `pool` are the live allocations before it, by
    // address and device.
    void begin(EventIndex checkpoint, PairMap driver, PairMap pool);

    // Whether the current event is in a checkpoint that follows a gap.
    [[nodiscard]] bool telling() const { return gap_ != nullptr; }

    // An allocation that the checkpoint lists. It was made either before or during the gap.
    void told(Layer layer, EventIndex index);

    // The checkpoint ends at event `index`. `holds_blocks`: the checkpoint listed blocks of a pool.
    void end(EventIndex index, bool holds_blocks);

    // Gives all allocations that a checkpoint lists the time of the gap's end, so that times
    // ascend. Their true times are known from before the gap, or nobody saw them.
    void settle_times();

  private:
    struct Sum {
        std::uint64_t count = 0;
        std::uint64_t bytes = 0;
    };

    Timeline& timeline_;
    RecordingGap* gap_ = nullptr;  // gap before the current checkpoint; nullptr = none
    PairMap before_[kLayers];      // live before the gap, not listed by the checkpoint yet
    Sum made_[kLayers];
    std::vector<std::pair<const RecordingGap*, EventIndex>> checkpoint_ends_;
};

}  // namespace fragtrace::analyzer
