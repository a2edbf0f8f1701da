// Where the record says that blocks lie, and what its pool asked the driver for: what a replay is
// held against.
//
// Segments are few and kept; placements are worked out one after the other from the events, so that
// nothing is kept per block.
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

// The cudaMallocs and map calls of the allocator, in order.
std::vector<RecordedSegmentCall> recorded_segments(const Timeline& timeline, DeviceId device);

struct RecordedPlacement {
    std::uint32_t segment = kUnknown32;  // in the order in which segments were obtained
    std::uint64_t offset_bytes = 0;
};

class RecordedPlacements {
  public:
    RecordedPlacements(const Timeline& timeline, const ReplayScript& script)
        : timeline_(timeline), script_(script) {}

    // Of the block that `event` hands out; none: no segment is recorded around it. Events are to
    // ascend.
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
