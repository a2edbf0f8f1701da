#include "analyzer/replay/assumptions.h"

#include <utility>
#include <vector>

namespace fragtrace::analyzer {

void assume_pending(PendingRule rule, ReplayScript* script) {
    if (rule == PendingRule::kRecorded || script->pending.empty()) {
        return;
    }
    std::vector<Step> steps;
    steps.reserve(script->steps.size());
    for (const Step& step : script->steps) {
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
