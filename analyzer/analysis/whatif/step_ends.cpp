#include "analyzer/analysis/whatif/step_ends.h"

#include <algorithm>

namespace fragtrace::analyzer {

StepEnds find_step_ends(const Timeline& timeline, const Iterations& iterations) {
    StepEnds steps;
    const std::vector<EventIndex>& begins = iterations.begins;
    if (iterations.source == Iterations::Source::kPhases) {
        steps.phase = iterations.phase;
        for (const Phase& phase : timeline.phases) {
            if (phase.end < timeline.events.size() &&
                std::binary_search(begins.begin(), begins.end(), phase.begin)) {
                steps.ends.push_back(phase.end);
            }
        }
        std::sort(steps.ends.begin(), steps.ends.end());
    } else {
        for (std::size_t i = 1; i < begins.size(); ++i) {
            steps.ends.push_back(begins[i] - 1);
        }
    }
    return steps;
}

}  // namespace fragtrace::analyzer
