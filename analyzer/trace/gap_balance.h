// What was freed and what was made while recording was stopped: what was held before the gap
// against what the checkpoint behind it tells.
#pragma once

#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Fills the sums of Timeline::gaps while the timeline is paired.
class GapBalance {
  public:
    enum Layer { kDriver, kPool, kLayers };

    explicit GapBalance(Timeline* timeline) : timeline_(*timeline) {}

    // A checkpoint begins at this event; `driver` and `pool` are what is held, by address and
    // device.
    void begin(EventIndex checkpoint, PairMap driver, PairMap pool);

    // A checkpoint behind a gap is being told.
    [[nodiscard]] bool telling() const { return gap_ != nullptr; }

    // An allocation that it tells of: from before the gap, or made in it.
    void told(Layer layer, EventIndex index);

    // It ends here; `holds_blocks`: it told of a pool's blocks.
    void end(EventIndex index, bool holds_blocks);

    // Times ascend: what a checkpoint tells anew has been told before the gap, or nobody saw it.
    void settle_times();

  private:
    struct Sum {
        std::uint64_t count = 0;
        std::uint64_t bytes = 0;
    };

    Timeline& timeline_;
    RecordingGap* gap_ = nullptr;  // the one in front of the checkpoint that is being told
    PairMap before_[kLayers];      // held at its begin, and not yet told of
    Sum made_[kLayers];
    std::vector<std::pair<const RecordingGap*, EventIndex>> checkpoint_ends_;
};

}  // namespace fragtrace::analyzer
