// A replay that checks every placement (placement_check.h).
#pragma once

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"

#include <string>

namespace fragtrace::analyzer {

struct ReplayCheck {
    ReplayResult result;          // up to the violation
    std::string violation;        // in one line; empty = none
    EventIndex event = kNoEvent;  // the event at which it was noticed
    std::uint64_t placements = 0;
    std::uint64_t comparisons = 0;  // of the whole address map
};

// `capacity_bytes` is the most memory that the pool's device grants.
ReplayCheck check_replay(const ReplayScript& script,
                         Pool& pool,
                         StreamRule streams,
                         std::uint64_t capacity_bytes);

}  // namespace fragtrace::analyzer
