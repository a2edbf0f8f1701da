// Makes event times non-decreasing. Events are ordered as they happened. But a thread reads its
// clock some nanoseconds before it gets its sequence number, and another thread may get a number in
// between. Allocations that a checkpoint lists keep their times. Not thread-safe.
#pragma once

#include "analyzer/model/event.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

class SteadyTime {
  public:
    // Returns the time of the next event in ns: its own, or that of the latest event before it.
    std::uint64_t of(EventKind kind, std::uint64_t time_ns) {
        const bool listed = in_checkpoint_;
        if (kind == EventKind::kCheckpointBegin || kind == EventKind::kCheckpointEnd) {
            in_checkpoint_ = kind == EventKind::kCheckpointBegin;
            return time_ns;  // time of the list; events in the ring are earlier
        }
        return listed ? time_ns : latest_ns_ = std::max(latest_ns_, time_ns);
    }

  private:
    std::uint64_t latest_ns_ = 0;
    bool in_checkpoint_ = false;
};

}  // namespace fragtrace::analyzer
