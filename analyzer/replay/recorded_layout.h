// The recorded positions of blocks, and the recorded driver requests of the pool. Replays are
// compared with them.
//
// Segments are few and are stored. Placements are computed from the events one by one, so nothing
// is stored per block.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

struct RecordedSegmentCall {
    DriverCall::Kind kind = DriverCall::Kind::kSegmentAlloc;
    std::uint64_t size_bytes = 0;
    EventIndex event = kNoEvent;
};

// The allocator's cudaMallocs and map calls, in order.
std::vector<RecordedSegmentCall> recorded_segments(const Timeline& timeline, DeviceId device);

struct RecordedPlacement {
    std::uint32_t segment = kUnknown32;  // numbered in the order of allocation
    std::uint64_t offset_bytes = 0;
};

class RecordedPlacements {
  public:
    RecordedPlacements(const Timeline& timeline, const ReplayScript& script)
        : timeline_(timeline), script_(script) {}

    // Recorded placement of the block that `event` allocates; nullopt if no recorded segment
    // contains it. Calls must come in ascending order of events.
    std::optional<RecordedPlacement> of(EventIndex event);

  private:
    struct Range {
        std::uint64_t size_bytes;
        std::uint32_t ordinal;
    };

    void advance_to(EventIndex event);
    void adopt(const HeapSnapshot& heap);
    void change_ranges(const Event& event);

    const Timeline& timeline_;
    const ReplayScript& script_;
    EventIndex next_ = 0;
    std::size_t next_checkpoint_ = 0;
    std::map<DeviceAddress, Range> ranges_;
    std::uint32_t next_ordinal_ = 0;
};

}  // namespace fragtrace::analyzer
