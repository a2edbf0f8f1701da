// Who wants to know what RecordedState does with the blocks and segments of a device, while it does
// it: whoever keeps their lives need not repeat its rules.
#pragma once

#include "analyzer/model/block_map.h"
#include "analyzer/model/segment_map.h"

#include <cstdint>

namespace fragtrace::analyzer {

class RecordedWatch {
  public:
    virtual ~RecordedWatch() = default;

    // It counts from now on: handed out, or its memory is mapped again.
    virtual void block_begins(const RecordedBlock& block) = 0;
    // Freed, and not reusable yet: it ends later.
    virtual void block_waits(const RecordedBlock& block) = 0;
    virtual void block_ends(const RecordedBlock& block) = 0;
    // Before it grows together with its neighbours.
    virtual void segment_begins(const RecordedSegment& segment) = 0;
    // These addresses go back to the driver; `segment` holds the first of them as yet. Its blocks
    // have ended.
    virtual void range_ends(const RecordedSegment* segment,
                            DeviceAddress begin,
                            DeviceAddress end) = 0;
    // A reset, or a checkpoint that tells anew what there is.
    virtual void all_ends() = 0;
    // `released`: nobody uses the private pool any more, its segments may go back.
    virtual void pool_changes(std::uint32_t private_pool, bool released) = 0;
};

}  // namespace fragtrace::analyzer
