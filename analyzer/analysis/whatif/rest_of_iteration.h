// The script of a run that goes on past its out-of-memory to the end of that step: what an earlier
// complete step asked for after the same place, in sizes of the step that failed. An estimate;
// docs/metrics.md, Forecast, has the rules.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/replay/script.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

struct RestOfIteration {
    std::string why_not;  // why there is none; empty: all below is set
    EventIndex failed = kNoEvent;
    std::size_t iteration = 0;  // that failed, from 1
    std::size_t basis = 0;      // the step that its rest is taken from, from 1
    // Of the requests up to the failed one, that included, whose size is another than in the basis:
    // bytes in the step, and in the basis.
    std::uint64_t asked_bytes = 0;
    std::uint64_t asked_bytes_then = 0;
    std::uint64_t requests = 0;  // that were added
    ReplayScript script;         // ends with the step; the failed request is an ordinary one in it
    // Requests of the step whose size is another than in the basis: place in `script`, size there.
    std::vector<std::pair<std::size_t, std::uint64_t>> sizes_then;

    [[nodiscard]] bool known() const { return why_not.empty(); }

    [[nodiscard]] double scale() const {
        return asked_bytes_then == 0
                   ? 1
                   : static_cast<double>(asked_bytes) / static_cast<double>(asked_bytes_then);
    }
};

// Of the first request of the pool that the record could not serve. Linear in the events.
RestOfIteration rest_of_iteration(const Timeline& timeline,
                                  const ReplayScript& script,
                                  const Iterations& iterations);

// The same with sizes between those of the basis (0) and of the step that failed (1).
ReplayScript resized(const RestOfIteration& rest, double share);

}  // namespace fragtrace::analyzer
