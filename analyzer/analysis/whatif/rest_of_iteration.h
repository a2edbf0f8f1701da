// Continues the script of a run past its out-of-memory to the end of that step. It adds the
// requests that an earlier complete step made after the same place, in sizes that fit the failed
// step. An estimate; docs/metrics.md, Forecast, has the rules.
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
    std::string why_not;  // why there is no such script; empty: all fields below are set
    EventIndex failed = kNoEvent;
    std::size_t iteration = 0;  // the failed step, from 1
    std::size_t basis = 0;      // the step whose requests complete it, from 1
    // Bytes of the requests up to and including the failed one whose size differs from the basis:
    // in the failed step, and in the basis.
    std::uint64_t asked_bytes = 0;
    std::uint64_t asked_bytes_then = 0;
    std::uint64_t requests = 0;  // requests that were added
    ReplayScript script;         // ends with the step; the failed request is an ordinary one in it
    // Requests of the step whose size differs from the basis: index into script.steps, size in the
    // basis.
    std::vector<std::pair<std::size_t, std::uint64_t>> sizes_then;

    [[nodiscard]] bool known() const { return why_not.empty(); }

    [[nodiscard]] double scale() const {
        return asked_bytes_then == 0
                   ? 1
                   : static_cast<double>(asked_bytes) / static_cast<double>(asked_bytes_then);
    }
};

// Continues after the pool request `failed`, which failed in the recorded run. Requests that failed
// before it are left out. Linear in the number of events.
RestOfIteration rest_of_iteration(const Timeline& timeline,
                                  const ReplayScript& script,
                                  const Iterations& iterations,
                                  EventIndex failed);

// The same script with sizes between those of the basis (share 0) and of the failed step (share 1).
ReplayScript resized(const RestOfIteration& rest, double share);

}  // namespace fragtrace::analyzer
