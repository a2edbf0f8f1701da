#include "analyzer/analysis/add_remedies.h"

#include "analyzer/analysis/recorded_replay.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/analysis/whatif/combinations.h"
#include "analyzer/analysis/whatif/less_memory.h"
#include "analyzer/analysis/whatif/obstacles.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/analysis/whatif/remedies.h"
#include "analyzer/analysis/whatif/row_costs.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kCombiningRounds = 2;
constexpr std::size_t kScannedSettings = 3;

DriverTimes driver_times(const RunMetrics& run) {
    DriverTimes times;
    for (const CallCosts& call : run.calls) {
        const double mean =
            call.count == 0 ? 0
                            : static_cast<double>(call.total_ns) / static_cast<double>(call.count);
        switch (call.kind) {
            case EventKind::kDeviceAlloc:
                times.alloc_ns = mean;
                break;
            case EventKind::kDeviceFree:
                times.free_ns = mean;
                break;
            case EventKind::kMap:
                times.map_ns = mean;
                break;
            case EventKind::kUnmap:
                times.unmap_ns = mean;
                break;
            default:
                break;
        }
    }
    return times;
}

// Finds the line that blocks most free memory at the reported out-of-memory, else at the peak, and
// its live blocks there.
void find_culprit(Analysis* analysis, const DeviceAnalysis& device, RemedyPlan* plan) {
    const Diagnosis* diagnosis = reported_oom(device);
    if (diagnosis == nullptr && device.peak) {
        diagnosis = &*device.peak;
    }
    const auto most = diagnosis == nullptr ? std::nullopt : most_blocking(*analysis, *diagnosis);
    if (!most) {
        return;
    }
    const std::vector<HeapBlock>& blocks = diagnosis->heap.blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const HeapBlock& block = blocks[i];
        if (block.state == BlockState::kLive && block.allocated_by != kNoEvent &&
            diagnosis->held_open[i] != 0 &&
            analysis->symbols->describe(analysis->timeline.events[block.allocated_by].origin) ==
                most->held.label) {
            plan->culprit.push_back(block.allocated_by);
        }
    }
    if (plan->culprit.empty()) {
        return;  // the line has only pending blocks, which are already freed
    }
    plan->culprit_label = most->held.label;
    std::sort(plan->culprit.begin(), plan->culprit.end());
    plan->culprit_line = requests_of_line(analysis->timeline, device.script, plan->culprit.front());
}

std::optional<HeldAtPeak> held_at_peak(const DeviceAnalysis& device) {
    if (!device.peak) {
        return std::nullopt;
    }
    const std::vector<EventIndex>& ends = device.iteration_ends.ends;
    const auto after = std::lower_bound(ends.begin(), ends.end(), device.peak->trouble.event);
    if (after - ends.begin() < 2) {
        return std::nullopt;
    }
    HeldAtPeak held;
    for (const HeapBlock& block : device.peak->heap.blocks) {
        if (block.state == BlockState::kLive) {
            held.live_bytes += block.size_bytes;
            held.older_bytes += block.allocated_by <= *(after - 2) ? block.size_bytes : 0;
        }
    }
    return held;
}

// Live memory at the reported out-of-memory, else at the peak of allocated memory.
MemoryByKind memory_by_kind(const DeviceAnalysis& device) {
    MemoryByKind kinds;
    if (device.held.holders.empty()) {
        return kinds;
    }
    const Holders& holders = device.held.holders.front();
    kinds.allocated_bytes = holders.allocated_bytes;
    const auto bytes_of = [&holders](Category category) {
        std::uint64_t bytes = 0;
        for (const Holding& holding : holders.categories) {
            bytes += holding.category == category ? holding.bytes : 0;
        }
        return bytes;
    };
    kinds.parameters = bytes_of(Category::kParameters);
    kinds.gradients = bytes_of(Category::kGradients);
    kinds.optimizer_state = bytes_of(Category::kOptimizerState);
    kinds.activations = bytes_of(Category::kActivations);
    return kinds;
}

// The kind of memory that a line has; empty if it has none, several, or none that is known.
std::string_view kind_of_line(const DeviceAnalysis& device, const std::string& label) {
    std::optional<Category> kind;
    for (const HoldingLine& line : device.held.holders.front().places) {
        if (line.held.label == label) {
            kind = kind.value_or(line.category) == line.category ? line.category : Category::kOther;
        }
    }
    return kind.value_or(Category::kOther) == Category::kOther ? std::string_view()
                                                               : category_name(*kind);
}

// Of the reported out-of-memory. Where enough memory was free, less memory is not the point.
Shortage shortage_of(const Analysis& analysis, const DeviceAnalysis& device) {
    const Diagnosis* failed = reported_oom(device);
    if (failed == nullptr || device.held.holders.empty()) {
        return {};
    }
    const OriginId origin = analysis.timeline.events[failed->trouble.event].origin;
    return {.requested_bytes = failed->verdict.requested_bytes,
            .missing_bytes = failed->verdict.missing_bytes(),
            .kind = kind_of_line(device, analysis.symbols->describe(origin))};
}

Status add_rows(const AnalyzeOptions& options,
                const std::function<void(WhatIfRow*)>& judge,
                const WhatIfRow& recorded,
                KnownReplays* known,
                Analysis* analysis,
                DeviceAnalysis* device) {
    const SweepContext context = sweep_context(*device);
    RemedyPlan plan;
    plan.iterations = device->iteration_ends;
    plan.every_steps = options.every_steps;
    find_long_lived(analysis->timeline, device->script, &plan);
    find_culprit(analysis, *device, &plan);
    Progress progress("replaying remedies");
    const auto show = [&](std::size_t done, std::size_t all) { progress.show(done, all); };
    std::vector<WhatIfRow> all = device->settings;
    // A combination becomes a row only if it is better than all rows before it. Its replay ends as
    // soon as it cannot be.
    const auto replay_all = [&](std::vector<Candidate> candidates,
                                bool combinations) -> Result<bool> {
        if (candidates.empty()) {
            return false;
        }
        const WhatIfRow* found = best_row(all, recorded);
        const std::optional<WhatIfRow> best =
            found == nullptr ? std::nullopt : std::optional(*found);
        for (Candidate& candidate : candidates) {
            if (combinations && best) {
                candidate.most_reserved_bytes = most_reserved_if_better(*best, recorded);
            }
        }
        auto rows = sweep(device->script, candidates, context, 0, show, known);
        if (!rows) {
            return rows.error();
        }
        bool any_better = false;
        for (WhatIfRow& row : *rows) {
            judge(&row);
            const bool better = !best || (row.usable && is_better(row, *best, recorded));
            row.candidate.most_reserved_bytes =
                Candidate{}.most_reserved_bytes;  // for later replays
            any_better = any_better || better;
            device->combinations_better += combinations && better ? 1 : 0;
            if (better || !combinations) {
                device->remedies.push_back(row);
                all.push_back(std::move(row));
            }
        }
        device->combinations_tried += combinations ? rows->size() : 0;
        return any_better;
    };
    const std::uint64_t others = device->capacity_known ? others_to_go(*device) : 0;
    const auto first = replay_all(
        remedy_candidates(device->script, context, plan, device->total_bytes, others), false);
    if (!first) {
        return first.error();
    }
    for (std::size_t round = 0; round < kCombiningRounds; ++round) {
        const auto better = replay_all(combine(all, recorded, context), true);
        if (!better) {
            return better.error();
        }
        if (!*better) {
            break;
        }
    }
    device->advice = judge_advice(all);
    rank(&device->remedies, recorded);
    return Ok{};
}

Status add_scans(const WhatIfRow& recorded, DeviceAnalysis* device) {
    // Scan the recorded settings and the best usable rows. Rows with equal peaks are scanned once.
    std::vector<Candidate> settings;
    std::vector<std::uint64_t> peaks;
    const auto add = [&](const WhatIfRow& row) {
        settings.push_back(row.candidate);
        peaks.push_back(row.result.statistics.reserved.peak);
    };
    add(recorded);
    for (const WhatIfRow* at : ranked_rows(*device)) {
        const WhatIfRow& row = *at;
        const Remedy remedy = row.candidate.remedy;
        const bool alike =
            std::find(peaks.begin(), peaks.end(), row.result.statistics.reserved.peak) !=
            peaks.end();
        if (settings.size() < kScannedSettings && row.usable && !alike &&
            (remedy == Remedy::kSettings || remedy == Remedy::kEmptyCache)) {
            add(row);
        }
    }
    Progress progress("scanning capacities");
    auto scans =
        scan_capacities(device->script,
                        settings,
                        sweep_context(*device),
                        device->recorded.peak_requested,
                        device->others_bytes,
                        [&](std::size_t done, std::size_t all) { progress.show(done, all); });
    if (!scans) {
        return scans.error();
    }
    device->scans = std::move(scans).value();
    return Ok{};
}

// A change that serves the failed request does not help a step that needs more than there is.
void limit_advice(DeviceAnalysis* device) {
    for (const WhatIfRow* row : ranked_rows(*device)) {
        for (Advice& advice : device->advice) {
            if (advice.row == row->candidate.name && row->rest_fits == false && advice.ooms < 0 &&
                advice.reason.empty()) {
                advice.reason = "for this request only: the rest of the step is forecast to fail";
            }
        }
    }
}

// Forecasts the memory that the failed step would have needed to its end.
Status add_forecast(const Analysis& analysis, DeviceAnalysis* device) {
    const Diagnosis* failed = reported_oom(*device);
    if (failed == nullptr || failed->verdict.requester != "pool" || !device->capacity_known) {
        return Ok{};
    }
    auto forecast = make_forecast(analysis.timeline,
                                  device->script,
                                  device->held.iterations,
                                  sweep_context(*device),
                                  failed->trouble.event,
                                  {.capacity_bytes = device->capacity_bytes,
                                   .others_bytes = device->others_bytes,
                                   .limit_bytes = device->limit_bytes},
                                  {&device->settings, &device->remedies, &device->capacities},
                                  {&device->pools, &device->bounds});
    if (!forecast) {
        return forecast.error();
    }
    device->forecast = std::move(forecast).value();
    return Ok{};
}

}  // namespace

Status add_remedies(const AnalyzeOptions& options,
                    KnownReplays* known,
                    Analysis* analysis,
                    DeviceAnalysis* device) {
    if (device->settings.empty()) {
        return Ok{};
    }
    Obstacles obstacles = find_obstacles(analysis->timeline, device->device);
    if (!options.torch_version.empty()) {
        obstacles.torch_version = options.torch_version;
    }
    const WhatIfRow* found = recorded_row(device->settings);
    if (found == nullptr) {
        return Ok{};
    }
    const WhatIfRow recorded = *found;
    // The virtual GPU's driver calls take other times than those of a real driver.
    const DriverTimes times = device->virtual_gpu ? DriverTimes{} : driver_times(analysis->run);
    const auto judge = [&](WhatIfRow* row) {
        judge_use(obstacles, device->config, row);
        row->cost = cost_of(*row, recorded, times);
    };
    for (auto* rows : {&device->settings, &device->capacities}) {
        std::for_each(rows->begin(), rows->end(), [&](WhatIfRow& row) { judge(&row); });
    }
    if (device->script.steps.size() > options.remedies_and_plans_up_to) {
        return Ok{};
    }
    if (!options.remedies) {
        return options.holders ? add_forecast(*analysis, device) : Ok{};
    }
    device->iteration_ends = find_iteration_ends(analysis->timeline, device->held.iterations);
    device->adaptation = find_adaptation(device->script);
    if (const Status done = add_rows(options, judge, recorded, known, analysis, device); !done) {
        return done;
    }
    if (const Status done = add_forecast(*analysis, device); !done) {
        return done;
    }
    limit_advice(device);
    for (Advice& advice : less_memory_advice(
             held_at_peak(*device), memory_by_kind(*device), shortage_of(*analysis, *device))) {
        device->advice.push_back(std::move(advice));
    }
    if (device->capacity_known) {
        auto setup = recorded_setup(*device);
        if (!setup) {
            return setup.error();
        }
        device->near_miss = find_near_miss(device->script, *setup->pool, setup->recorded);
    }
    return options.scans ? add_scans(recorded, device) : Ok{};
}

}  // namespace fragtrace::analyzer
