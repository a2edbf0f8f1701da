#include "analyzer/replay/assumptions.h"

#include <cstddef>
#include <utility>

namespace fragtrace::analyzer {

void assume_pending(PendingRule rule, ReplayScript* script) {
    if (rule == PendingRule::kRecorded || script->pending.empty()) {
        return;
    }
    StepTable steps;
    for (std::size_t at = 0; at < script->steps.size(); ++at) {
        const Step step = script->steps[at];
        if (step.kind == Step::Kind::kComplete) {
            continue;
        }
        steps.push_back(step);
        if (rule == PendingRule::kAtOnce && step.kind == Step::Kind::kRelease) {
            for (std::uint32_t i = 0; i < step.pending_count; ++i) {
                steps.push_back({.kind = Step::Kind::kComplete,
                                 .event = step.event,
                                 .value = script->pending[step.first_pending + i].id});
            }
        }
    }
    script->steps = std::move(steps);
}

}  // namespace fragtrace::analyzer
