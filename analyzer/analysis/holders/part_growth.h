// Live bytes at the same place of successive iterations: at the end of each part of them. What is
// given back before an iteration ends does not show where the next one begins. Plain data;
// docs/metrics.md, Growth.
#pragma once

#include "analyzer/analysis/holders/run_history.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct PartGrowth {
    std::string part;  // a phase inside of the iterations; else "forward", "backward", "optimizer"
    std::size_t first = 0;  // iterations compared, as in Growth
    std::size_t last = 0;
    std::uint64_t bytes_at_first = 0;  // live when the part ends; where it recurs, the last time
    std::uint64_t bytes_at_last = 0;
    std::uint32_t times_grown = 0;
    bool fell = false;  // from one iteration to the next, ever

    // As places do: it never fell, and rose at half of the iterations or more. Of three ends that
    // vary each sixth run has them in rising order, so that four are needed.
    [[nodiscard]] bool grows() const {
        return last - first >= 3 && !fell && times_grown * 2 >= last - first;
    }
};

// In the order in which the parts end first; at most sixteen. Empty where there are too few
// iterations. `first`: the first iteration that is compared, 0 = none.
std::vector<PartGrowth> part_growth(const Timeline& timeline,
                                    const RunHistory& history,
                                    std::size_t first);

}  // namespace fragtrace::analyzer
