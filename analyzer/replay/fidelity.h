// How well a replay of the recorded configuration agrees with the record: the reason to believe
// everything else. docs/metrics.md has the definition.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/replay/replayer.h"

#include <cstdint>
#include <string>

namespace fragtrace::analyzer {

struct Fidelity {
    std::uint64_t placements = 0;        // blocks handed out in the record
    std::uint64_t placements_equal = 0;  // replayed into the same segment at the same offset
    std::uint64_t segments = 0;          // cudaMallocs and map calls in the record
    std::uint64_t segments_equal = 0;    // replayed with the same kind and size, in order
    std::string reason;                  // empty when all are equal; else where it first parted
    std::string not_judged;  // why the numbers say nothing: a record that lacks events on purpose

    [[nodiscard]] bool exact() const {
        return placements == placements_equal && segments == segments_equal && reason.empty() &&
               not_judged.empty();
    }
};

// Replays `script` through `pool`, free-running (after a miss it goes on by its own state), with
// the recorded driver refusals taken from the record. `recorded` is the device beneath `pool`.
Fidelity measure_fidelity(const Timeline& timeline,
                          const ReplayScript& script,
                          Pool& pool,
                          RecordedDevice& recorded,
                          ReplayResult* result = nullptr);

}  // namespace fragtrace::analyzer
