// Finds where the iterations of a run end, for remedies that act once in each.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct IterationEnds {
    // The last event of each iteration, ascending; empty: no iterations were found. If iterations
    // were found from recurring requests, the last one has no known end.
    std::vector<EventIndex> ends;
    // Name of the iterations' phase; empty: they were found from recurring requests.
    std::string phase;

    [[nodiscard]] bool empty() const { return ends.empty(); }
};

IterationEnds find_iteration_ends(const Timeline& timeline, const Iterations& iterations);

}  // namespace fragtrace::analyzer
