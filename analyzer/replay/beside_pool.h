// Memory outside the pool: of libraries, of the program's own cudaMallocs, of other processes. It
// varies over time, but a replay uses one capacity for the whole run.
#pragma once

#include "analyzer/replay/replayer.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

struct BesidePool {
    // First and last event between which the process's own memory outside the pool was as large as
    // when the pool's capacity was determined.
    EventIndex from = 0;
    EventIndex until = kNoEvent;     // kNoEvent: until the end
    std::uint64_t excess_bytes = 0;  // how much larger it was at most, with other processes
};

// Whether the replay would be the same with the memory that was really left for the pool at each
// moment. Two conditions: all refusals lie in the range for which the capacity is known, and the
// pool's peak plus allocations that bypass the pool leave room for the excess.
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
