// Times of events that never go back. The order of events is that in which they happened; but a
// thread reads its clock some nanoseconds before it gets its number, and another may be between.
// What a checkpoint lists keeps the times of its allocations. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

class SteadyTime {
  public:
    // Of the next event: its own time, or that of the latest one before it. In ns.
    std::uint64_t of(EventKind kind, std::uint64_t time_ns) {
        const bool listed = in_checkpoint_;
        if (kind == EventKind::kCheckpointBegin || kind == EventKind::kCheckpointEnd) {
            in_checkpoint_ = kind == EventKind::kCheckpointBegin;
            return time_ns;  // when the list was made: events in the ring are earlier
        }
        return listed ? time_ns : latest_ns_ = std::max(latest_ns_, time_ns);
    }

  private:
    std::uint64_t latest_ns_ = 0;
    bool in_checkpoint_ = false;
};

}  // namespace fragtrace::analyzer
