// Where the iterations of a run end, for remedies that act once in each.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct IterationEnds {
    // The last event of each iteration, ascending; empty: none were found. Of iterations that are
    // told by what recurs, the last one has no known end.
    std::vector<EventIndex> ends;
    std::string phase;  // what the iterations are called; empty: told by requests that recur

    [[nodiscard]] bool empty() const { return ends.empty(); }
};

IterationEnds find_iteration_ends(const Timeline& timeline, const Iterations& iterations);

}  // namespace fragtrace::analyzer
