// Compares a replay with recorded placements, whatever pool they come from.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/replay/fidelity.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The recorded place of the block that an event allocates. Called in ascending order of events.
using RecordedPlace = std::function<std::optional<RecordedPlacement>(EventIndex)>;

// What a replay is compared with.
struct RecordedPlaces {
    std::span<const RecordedSegmentCall> segments;  // in order
    RecordedPlace place;
    // Where the pool may take any of several equal blocks, the recording decides
    // (SegmentPool::prefer).
    bool chooses = false;
};

// The blocks that have another size in a replay than in the recording (block_sizes.h).
struct OtherSizes {
    std::vector<std::pair<EventIndex, std::uint64_t>> blocks;  // allocating event, bytes
    // False: the replay places or refuses other blocks than the recording.
    bool same_places = true;
};

// A hook for ReplayHooks::before_step: in the first `steps` steps the recording decides where the
// pool may take any of several equal blocks. Null for pools without such a choice. All arguments
// must outlive it.
std::function<bool(std::size_t step, Pool& pool)> choose_places(const ReplayScript& script,
                                                                const RecordedPlace& place,
                                                                Pool& pool,
                                                                std::size_t steps);

// Replays `script` with `pool`. The driver refuses where it refused in the recording. After a
// difference the replay continues from its own state. `recorded` is the device of `pool`.
Fidelity compare_replay(const Timeline& timeline,
                        const ReplayScript& script,
                        const RecordedPlaces& run,
                        Pool& pool,
                        RecordedDevice& recorded,
                        ReplayResult* result = nullptr,
                        OtherSizes* sizes = nullptr);

// measure_fidelity() of fidelity.h, which also fills `sizes`. nullptr = not needed.
Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result,
                          OtherSizes* sizes);

}  // namespace fragtrace::analyzer
