// An observer of the blocks and segments of one device. RecordedState calls it for every change, so
// that observers need not repeat its rules.
#pragma once

#include "analyzer/model/block_map.h"
#include "analyzer/model/segment_map.h"

#include <cstdint>

namespace fragtrace::analyzer {

class RecordedWatch {
  public:
    virtual ~RecordedWatch() = default;

    // The block counts from now on: it was allocated, or its memory was mapped again.
    virtual void block_begins(const RecordedBlock& block) = 0;
    // The program freed the block, but it is not reusable yet. block_ends() follows later.
    virtual void block_waits(const RecordedBlock& block) = 0;
    virtual void block_ends(const RecordedBlock& block) = 0;
    // Called before the segment merges with its neighbours.
    virtual void segment_begins(const RecordedSegment& segment) = 0;
    // The memory of [begin, end) returns to the driver. `segment` contains `begin` and is not cut
    // yet. The blocks in the range have ended.
    virtual void range_ends(const RecordedSegment* segment,
                            DeviceAddress begin,
                            DeviceAddress end) = 0;
    // Everything on the device ends: a reset, or a checkpoint that lists the whole state again.
    virtual void all_ends() = 0;
    // `released`: the private pool has no user any more, so its segments may be released.
    virtual void pool_changes(std::uint32_t private_pool, bool released) = 0;
};

}  // namespace fragtrace::analyzer
