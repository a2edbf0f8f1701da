// How near a run came to running out, whether it did or not.
#pragma once

#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The largest request that would have fitted: a free block of the pool, or what the driver could
// give once the pool has returned all that it can.
struct FittingRequest {
    EventIndex event = kNoEvent;  // after this request
    std::uint64_t bytes = 0;
};

struct NearMiss {
    std::vector<FittingRequest> over_time;  // at most a few hundred, ascending
    FittingRequest least;                   // of all moments looked at
    std::uint64_t looked_at = 0;            // requests
    std::uint64_t requests = 0;
};

// Replays the recorded run once more, watched; looks at every request or, of a long script, at
// every n-th: `least` is then an upper bound.
NearMiss find_near_miss(const ReplayScript& script, Pool& pool, RecordedDevice* recorded);

}  // namespace fragtrace::analyzer
