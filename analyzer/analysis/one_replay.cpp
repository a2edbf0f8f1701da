#include "analyzer/analysis/one_replay.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/recorded_replay.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/analysis/unchecked_rows.h"
#include "analyzer/analysis/verdict/verdict.h"
#include "analyzer/analysis/whatif/other_pools.h"
#include "analyzer/analysis/whatif/sweep.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

void ReplayChoice::choose_pool(const std::string& text) {
    pool = text;
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos && !config_given) {
        config = text.substr(colon + 1);
        config_given = true;
        pool.resize(colon);
    }
}

Result<const DeviceAnalysis*> ReplayChoice::find_device(const Analysis& analysis) const {
    for (const DeviceAnalysis& candidate : analysis.devices) {
        if (candidate.device == device) {
            return &candidate;
        }
    }
    const std::string& trace = analysis.timeline.path;
    return Error{
        ErrorCode::kUsage,
        fmt::format(
            "{}: nothing was allocated on device {}; see 'fraganalyze {}'", trace, device, trace)};
}

Candidate ReplayChoice::candidate(const DeviceAnalysis& recorded,
                                  std::optional<std::uint64_t> capacity_bytes) const {
    // The pool of an input without segments is not known.
    const std::string otherwise = segments_known(recorded.recorded) ? recorded.pool : "pytorch";
    const std::string& name = pool.empty() ? otherwise : pool;
    std::string settings = config;
    if (!config_given && name == recorded.pool) {
        settings = recorded.config;
    }
    Candidate chosen{.name = settings,
                     .pool = name,
                     .config = settings,
                     .capacity_bytes = capacity_bytes.value_or(recorded.capacity_bytes)};
    const std::uint64_t needed = chosen.capacity_bytes + recorded.others_bytes;
    chosen.total_bytes = capacity_bytes ? needed : std::max(recorded.total_bytes, needed);
    return chosen;
}

Result<OneReplay> replay_once(const DeviceAnalysis& device, const Candidate& candidate) {
    constexpr std::size_t kMaxDiagnoses = 16;
    auto setup = candidate_setup(device, candidate);
    if (!setup) {
        return setup.error();
    }
    OneReplay done{.setup = std::move(setup).value(), .row = {}, .diagnoses = {}};
    done.row.candidate = candidate;
    done.row.result = replay(device.script, *done.setup.pool);
    if (const auto lower = lower_end(candidate)) {
        Candidate at_lower_end = candidate;
        at_lower_end.config = *lower;
        auto lower_setup = candidate_setup(device, at_lower_end);
        if (!lower_setup) {
            return lower_setup.error();
        }
        done.row.lower = replay(device.script, *lower_setup->pool);
    }
    classify_row(sweep_context(device), &done.row);
    mark_unchecked(device.recorded, &done.row);
    if (!done.row.result.troubles.empty()) {  // a second pool may need a second plan
        auto second = candidate_setup(device, candidate);
        if (!second) {
            return second.error();
        }
        CoverBudget budget;
        done.diagnoses = diagnose(device.script,
                                  done.row.result.troubles,
                                  std::move(second).value(),
                                  others_to_go(device),
                                  kMaxDiagnoses,
                                  kNoEvent,
                                  &budget);
    }
    return done;
}

}  // namespace fragtrace::analyzer
