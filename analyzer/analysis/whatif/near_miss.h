// How close a run came to running out of memory, whether it did or not.
#pragma once

#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The largest request that would have fitted. It fits in a free block of the pool, or in the
// driver's free memory once the pool has returned all that it can.
struct FittingRequest {
    EventIndex event = kNoEvent;  // right after this request
    std::uint64_t bytes = 0;
};

struct NearMiss {
    std::vector<FittingRequest> over_time;  // at most a few hundred, ascending
    FittingRequest least;                   // minimum over all examined moments
    std::uint64_t looked_at = 0;            // examined requests
    std::uint64_t requests = 0;
};

// Replays the recorded run once more. Examines every request or, for a long script, every n-th one;
// then `least` is an upper bound.
NearMiss find_near_miss(const ReplayScript& script, Pool& pool, RecordedDevice* recorded);

}  // namespace fragtrace::analyzer
