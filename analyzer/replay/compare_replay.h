// Compares a replay with recorded placements, whatever pool they come from.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/replay/fidelity.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/replay/replayer.h"

#include <functional>
#include <optional>
#include <span>

namespace fragtrace::analyzer {

// What a replay is compared with.
struct RecordedPlaces {
    std::span<const RecordedSegmentCall> segments;  // in order
    // The recorded place of the block that an event allocates. Called in ascending order of events.
    std::function<std::optional<RecordedPlacement>(EventIndex)> place;
    // Where the pool may take any of several equal blocks, the recording decides
    // (SegmentPool::prefer).
    bool chooses = false;
};

// Replays `script` with `pool`. The driver refuses where it refused in the recording. After a
// difference the replay continues from its own state. `recorded` is the device of `pool`.
Fidelity compare_replay(const Timeline& timeline,
                        const ReplayScript& script,
                        const RecordedPlaces& run,
                        Pool& pool,
                        RecordedDevice& recorded,
                        ReplayResult* result = nullptr);

}  // namespace fragtrace::analyzer
