// Measures how well a replay of the recorded configuration matches the recording. All other results
// rely on this match. Definition: docs/metrics.md.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

struct Fidelity {
    std::uint64_t placements = 0;        // recorded allocations of blocks
    std::uint64_t placements_equal = 0;  // replayed in the same segment at the same offset
    // Of these: blocks for which the rules of the pool allow several equal places, and the replay
    // took the recorded one (RecordedPlaces::chooses). 0 for PyTorch's allocator.
    std::uint64_t placements_chosen = 0;
    std::uint64_t segments = 0;        // recorded cudaMallocs and map calls
    std::uint64_t segments_equal = 0;  // replayed with the same kind and size, in order
    std::string reason;                // the first difference; empty if everything is equal
    // Why the replay cannot be compared, e.g. the recording omits events on purpose.
    std::string not_judged;

    [[nodiscard]] bool exact() const {
        return placements == placements_equal && segments == segments_equal && reason.empty() &&
               not_judged.empty();
    }
};

// Replays `script` with `pool`. The driver refuses where it refused in the recording. After a
// difference the replay continues from its own state. `recorded` is the device of `pool`.
Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result = nullptr);

}  // namespace fragtrace::analyzer
