#include "analyzer/analysis/whatif/iteration_ends.h"

#include <algorithm>

namespace fragtrace::analyzer {

IterationEnds find_iteration_ends(const Timeline& timeline, const Iterations& iterations) {
    IterationEnds found;
    const std::vector<EventIndex>& begins = iterations.begins;
    if (iterations.source == Iterations::Source::kPhases) {
        found.phase = iterations.phase;
        for (const Phase& phase : timeline.phases) {
            if (phase.end < timeline.events.size() &&
                std::binary_search(begins.begin(), begins.end(), phase.begin)) {
                found.ends.push_back(phase.end);
            }
        }
        std::sort(found.ends.begin(), found.ends.end());
    } else {
        for (std::size_t i = 1; i < begins.size(); ++i) {
            found.ends.push_back(begins[i] - 1);
        }
    }
    return found;
}

}  // namespace fragtrace::analyzer
