#include "analyzer/analysis/program_pool_trials.h"

#include "analyzer/pools/registry/pool_registry.h"

#include <algorithm>
#include <memory>
#include <string>

namespace fragtrace::analyzer {
bool is_recorded(const Timeline& timeline, std::string_view framework) {
    return timeline.fact(std::string(framework)) == "recorded";
}

std::size_t first_failed_step(const ReplayScript& script) {
    std::size_t at = 0;
    while (at < script.steps.size() && !script.steps[at].recorded_oom) {
        ++at;
    }
    return at;
}

void replay_into(const ReplayScript& script,
                 EventIndex failed_event,
                 Pool& pool,
                 ReplayHooks hooks,
                 ProgramPoolRemedy* remedy) {
    bool served = false;
    hooks.after_request = [&](std::size_t step, const AllocateResult& result, Pool&) {
        if (script.steps[step].event == failed_event) {
            served = result.outcome != Outcome::kOutOfMemory;
        }
    };
    const ReplayResult result = replay(script, pool, nullptr, hooks);
    remedy->failed = result.ooms();
    remedy->peak_reserved_bytes = result.statistics.reserved.peak;
    const bool before =
        std::any_of(result.troubles.begin(), result.troubles.end(), [&](const Trouble& trouble) {
            return trouble.outcome == Outcome::kOutOfMemory && trouble.event < failed_event;
        });
    remedy->serves =
        served && !before ? ProgramPoolRemedy::Serves::kYes : ProgramPoolRemedy::Serves::kNo;
}

bool try_settings(const ReplayScript& script,
                  const SimulatedSettings& settings,
                  ProgramPoolRemedy* remedy) {
    auto simulated = make_pool(
        remedy->pool,
        settings.config,
        std::make_unique<FixedDevice>(settings.total_bytes, kUnlimitedBytes, kDriverPageBytes),
        script.streams);
    if (!simulated) {
        return false;
    }
    remedy->config = settings.config;
    replay_into(script, script.steps[first_failed_step(script)].event, **simulated, {}, remedy);
    return true;
}

}  // namespace fragtrace::analyzer
