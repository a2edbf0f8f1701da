#include "analyzer/analysis/verdict/outlived.h"

namespace fragtrace::analyzer {

Outlived outlived_phase(const Timeline& timeline,
                        const PhaseIndex& phases,
                        EventIndex born,
                        EventIndex until) {
    Outlived outlived;
    outlived.phase = phases.phase_of(born);
    if (outlived.phase == PhaseIndex::kNone) {
        return outlived;
    }
    const Phase& own = timeline.phases[outlived.phase];
    outlived.over = own.end < until;
    if (!outlived.over) {
        return outlived;
    }
    for (std::uint32_t i = 0; i < timeline.phases.size(); ++i) {
        const Phase& phase = timeline.phases[i];
        if (phase.thread != own.thread || phase.begin <= own.end || phase.begin > until ||
            phases.is_library(i)) {
            continue;
        }
        outlived.again += phase.name == own.name && phase.kind == own.kind ? 1 : 0;
        outlived.phases_since += phase.depth <= own.depth ? 1 : 0;
    }
    return outlived;
}

}  // namespace fragtrace::analyzer
