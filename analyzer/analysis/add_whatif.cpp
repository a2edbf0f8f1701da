#include "analyzer/analysis/add_whatif.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/unchecked_rows.h"
#include "analyzer/analysis/whatif/candidates.h"
#include "analyzer/analysis/whatif/other_pools.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/analysis/whatif/script_change.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// If no request reached the driver while recording, every row would equal the recorded run,
// whatever its settings.
std::string why_no_whatif(const DeviceAnalysis& device) {
    const std::uint64_t held = adopted_bytes(device.script);
    if (device.state_only) {
        return "it is the state at one moment, without requests that could be replayed";
    }
    if (held != 0 && device.script.source == ScriptSource::kBlocks &&
        device.recorded.segments_allocated == 0 && device.troubles == 0) {
        return fmt::format(
            "all segments were allocated before the history begins; a replay cannot move these {}",
            format_bytes(held));
    }
    return "";
}

Status add_whatif(const AnalyzeOptions& options, KnownReplays* known, DeviceAnalysis* device) {
    if (device->script.source != ScriptSource::kBlocks) {
        return Ok{};
    }
    const SweepContext context = sweep_context(*device);
    std::vector<Candidate> candidates;
    if (options.settings && device->no_whatif.empty()) {
        candidates = default_settings(context, device->total_bytes);
    }
    const std::size_t settings = candidates.size();
    if (options.settings && !device->state_only) {
        device->plan_left_out = device->script.steps.size() > options.remedies_and_plans_up_to;
        const auto bounds =
            bound_candidates(device->script, context, device->total_bytes, !device->plan_left_out);
        candidates.insert(candidates.end(), bounds.begin(), bounds.end());
    }
    const std::size_t settings_and_bounds = candidates.size();
    if (options.pools && device->no_whatif.empty()) {
        const auto pools = pool_candidates(context, device->total_bytes);
        candidates.insert(candidates.end(), pools.begin(), pools.end());
    }
    const std::size_t all_but_capacities = candidates.size();
    if (options.capacities && device->capacity_known && device->no_whatif.empty()) {
        auto more = default_capacities(context,
                                       device->total_bytes,
                                       device->recorded.peak_allocated / 2,
                                       2 * device->total_bytes);
        for (Candidate& card : more) {
            // After a failure that the recorded run did not have, the program is unpredictable.
            card.until_failure = device->recorded.ooms == 0;
        }
        candidates.insert(candidates.end(), more.begin(), more.end());
    }
    if (candidates.empty()) {
        return Ok{};
    }
    std::optional<ReplayScript> served;
    if (!segments_known(device->recorded) && !device->capacity_known) {
        served = without_failures(device->script);
    }
    const ReplayScript& script = served ? *served : device->script;
    Progress progress("replaying");
    const auto show = [&](std::size_t done, std::size_t all) { progress.show(done, all); };
    auto rows = sweep(script, candidates, context, 0, show, served ? nullptr : known);
    if (!rows) {
        return rows.error();
    }
    for (WhatIfRow& row : *rows) {
        mark_unchecked(device->recorded, &row);
    }
    const auto first_bound = rows->begin() + static_cast<std::ptrdiff_t>(settings);
    const auto first_pool = rows->begin() + static_cast<std::ptrdiff_t>(settings_and_bounds);
    const auto first_capacity = rows->begin() + static_cast<std::ptrdiff_t>(all_but_capacities);
    device->settings.assign(rows->begin(), first_bound);
    device->bounds.assign(first_bound, first_pool);
    device->pools.assign(first_pool, first_capacity);
    device->capacities.assign(first_capacity, rows->end());
    if (const WhatIfRow* recorded = recorded_row(device->settings)) {
        rank(&device->settings, *recorded);
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
