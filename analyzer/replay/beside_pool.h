// Memory of the traced process beside its pool: a library's, or cudaMallocs of the program itself.
// It comes and goes, and a replay has one capacity for the whole run.
#pragma once

#include "analyzer/replay/replayer.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

struct BesidePool {
    // Events between which as much was held beside the pool as when its capacity was read.
    EventIndex from = 0;
    EventIndex until = kNoEvent;     // kNoEvent: to the end
    std::uint64_t excess_bytes = 0;  // how much more was held at most, at any time of the run
};

// Whether the replay is the same with what was really left for the pool at each moment: nothing was
// refused at another time than that of the capacity, and its peak, and what it holds past the
// pool, fit beside the excess.
inline bool is_capacity_known(const BesidePool& beside,
                              const ReplayResult& result,
                              std::uint64_t capacity_bytes) {
    const std::uint64_t least = capacity_bytes - std::min(beside.excess_bytes, capacity_bytes);
    const auto at_that_time = [&beside](const Trouble& trouble) {
        return trouble.event >= beside.from &&
               (beside.until == kNoEvent || trouble.event < beside.until);
    };
    const bool fits = beside.excess_bytes == 0 || (result.statistics.reserved.peak <= least &&
                                                   result.least_free_bytes >= beside.excess_bytes);
    return fits && std::all_of(result.troubles.begin(), result.troubles.end(), at_that_time);
}

}  // namespace fragtrace::analyzer
