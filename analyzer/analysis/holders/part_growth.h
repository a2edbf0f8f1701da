// Live bytes at the end of each part of successive iterations. This shows growth of memory that is
// freed before the iteration ends, and so is not live when the next one begins. Plain data;
// docs/metrics.md, Growth.
#pragma once

#include "analyzer/analysis/holders/run_history.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct PartGrowth {
    std::string part;  // a phase inside the iterations; else "forward", "backward" or "optimizer"
    std::size_t first = 0;  // first and last compared iteration, as in Growth
    std::size_t last = 0;
    // Live bytes when the part ends; if it occurs several times in an iteration, at its last end.
    std::uint64_t bytes_at_first = 0;
    std::uint64_t bytes_at_last = 0;
    std::uint32_t times_grown = 0;
    bool fell = false;  // true if the bytes fell from any iteration to the next

    // Same rule as for places: the bytes never fell, and rose in at least half of the iterations.
    // At least four ends are needed: three random ends are in rising order in one run of six.
    [[nodiscard]] bool grows() const {
        return last - first >= 3 && !fell && 2 * std::size_t{times_grown} >= last - first;
    }
};

// Parts in the order in which they first end; at most sixteen. Empty if there are too few
// iterations. `first`: the first compared iteration, 0 = none.
std::vector<PartGrowth> part_growth(const Timeline& timeline,
                                    const RunHistory& history,
                                    std::size_t first);

}  // namespace fragtrace::analyzer
