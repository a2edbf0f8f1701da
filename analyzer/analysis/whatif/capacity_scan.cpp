#include "analyzer/analysis/whatif/capacity_scan.h"

#include "analyzer/analysis/whatif/candidates.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <optional>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kCoarse = 24;  // capacities in the first pass, per setting
constexpr std::uint64_t kFine = 8;     // capacities in the second pass, at either end
// For scripts with more steps than this, the first pass is coarser and the second is skipped.
constexpr std::size_t kLongScript = 1'000'000;

std::vector<std::uint64_t> between(std::uint64_t from,
                                   std::uint64_t to,
                                   std::uint64_t count,
                                   std::uint64_t page,
                                   std::uint64_t* step) {
    *step = std::max(
        page, round_up((to > from ? to - from : 0) / std::max<std::uint64_t>(count, 1), page));
    std::vector<std::uint64_t> capacities;
    if (from >= to) {  // sizes of a damaged trace may be near the integer limit
        return capacities;
    }
    for (std::uint64_t capacity = round_up(from, page); capacity < to; capacity += *step) {
        capacities.push_back(capacity);
    }
    return capacities;
}

// The scan of one setting: tried capacities, and whether they fit.
struct Scan {
    CapacityScan result;
    std::vector<std::pair<std::uint64_t, bool>> tried;
    bool loses_pool = false;
    bool pages_decide = false;
    // Memory outside the pool changed, so the true capacity may differ.
    bool capacity_unknown = false;

    void conclude() {
        std::sort(tried.begin(), tried.end());
        result.tried = tried.size();
        result.least_fits = 0;
        result.largest_fails = 0;
        for (const auto& [capacity, fits] : tried) {
            if (fits) {
                result.least_fits =
                    result.least_fits == 0 ? capacity : std::min(result.least_fits, capacity);
            } else {
                result.largest_fails = std::max(result.largest_fails, capacity);
            }
        }
    }
};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// The smallest part of the card to which the process is ever limited; 1 = never limited.
double least_part_of_card(const ReplayScript& script, const Candidate& setting) {
    const auto config = parse_pytorch_config(setting.config, script.rules);
    return std::min(least_memory_fraction(script),
                    config ? config->per_process_memory_fraction : 1);
}

// The pool's capacity on the smallest card of which `part` is `bytes`.
std::uint64_t capacity_for_part(std::uint64_t bytes, double part, std::uint64_t others_bytes) {
    const double card = static_cast<double>(bytes) / part;
    if (!(card < static_cast<double>(kMostBytes))) {  // also if `part` is 0
        return kMostBytes;
    }
    const auto card_bytes = static_cast<std::uint64_t>(card) + 1;
    return card_bytes - std::min(card_bytes, others_bytes);
}

// The capacity that is enough, from a replay on a card of kUnlimitedBytes.
std::uint64_t enough_bytes(const ReplayResult& unlimited) {
    const auto all = static_cast<std::int64_t>(kUnlimitedBytes);
    const std::int64_t for_libraries = all - std::min(all, unlimited.libraries_spare);
    const std::uint64_t with_past_pool =
        kUnlimitedBytes - std::min(kUnlimitedBytes, unlimited.least_free_bytes);
    return std::min(kMostBytes,
                    std::max({unlimited.statistics.reserved.peak,
                              static_cast<std::uint64_t>(for_libraries),
                              with_past_pool}));
}

}  // namespace

Adaptation find_adaptation(const ReplayScript& script) {
    Adaptation found;
    EventIndex failed = kNoEvent;
    EventIndex last = kNoEvent;  // last request to the pool
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kMemoryInfo) {
            found.asks = found.asked++ == 0 ? step.event : found.asks;
        } else if (step.kind == Step::Kind::kAllocate) {
            if (failed != kNoEvent && found.goes_on == kNoEvent) {
                found.goes_on = failed;
            }
            if (step.recorded_oom) {
                failed = failed == kNoEvent ? step.event : failed;
            }
            found.ends_with_oom = step.recorded_oom;
            last = step.event;
        }
    }
    for (const LibraryRequest& request : script.libraries) {
        if (last == kNoEvent || last < request.event) {
            found.ends_with_oom = true;
        } else {
            found.goes_on = std::min(found.goes_on, request.event);
        }
    }
    return found;
}

Result<std::vector<CapacityScan>> scan_capacities(
    const ReplayScript& script,
    const std::vector<Candidate>& settings,
    const SweepContext& context,
    std::uint64_t least_bytes,
    std::uint64_t others_bytes,
    const std::function<void(std::size_t, std::size_t)>& progress) {
    const std::uint64_t page = context.driver_page_bytes;
    const bool is_long = script.steps.size() > kLongScript;
    std::vector<Scan> scans;
    const auto on_card = [&](const Candidate& setting, std::uint64_t capacity) {
        Candidate candidate = setting;
        candidate.capacity_bytes = capacity;
        candidate.total_bytes = capacity + others_bytes;
        candidate.until_failure = true;
        return candidate;
    };
    std::vector<Candidate> unlimited;
    std::vector<double> parts;
    for (const Candidate& setting : settings) {
        parts.push_back(least_part_of_card(script, setting));
        unlimited.push_back(on_card(setting, kUnlimitedBytes));
        unlimited.back().total_bytes = capacity_for_part(kUnlimitedBytes, parts.back(), 0);
    }
    const auto peaks = sweep(script, unlimited, context, 0);
    if (!peaks) {
        return peaks.error();
    }
    for (std::size_t i = 0; i < settings.size(); ++i) {
        Scan scan;
        scan.result.candidate = settings[i];
        std::uint64_t enough = enough_bytes((*peaks)[i].result);
        if (parts[i] < 1) {
            const std::uint64_t peak = (*peaks)[i].result.statistics.reserved.peak;
            enough = std::max(enough, capacity_for_part(peak, parts[i], others_bytes));
        }
        scan.result.enough_bytes = round_up(enough, page);
        scan.loses_pool = (*peaks)[i].loses_pool();
        scans.push_back(std::move(scan));
    }
    const auto try_all = [&](const std::vector<std::vector<std::uint64_t>>& capacities) -> Status {
        std::vector<Candidate> candidates;
        for (std::size_t i = 0; i < scans.size(); ++i) {
            for (const std::uint64_t capacity : capacities[i]) {
                candidates.push_back(on_card(settings[i], capacity));
            }
        }
        if (candidates.empty()) {
            return Ok{};
        }
        const auto rows = sweep(script, candidates, context, 0, progress);
        if (!rows) {
            return rows.error();
        }
        std::size_t next = 0;
        for (std::size_t i = 0; i < scans.size(); ++i) {
            for (const std::uint64_t capacity : capacities[i]) {
                const WhatIfRow& row = (*rows)[next++];
                scans[i].tried.emplace_back(capacity, row.ooms() == 0);
                scans[i].loses_pool |= row.loses_pool();
                scans[i].pages_decide |= row.result.pages_decide;
                scans[i].capacity_unknown |=
                    !is_capacity_known(context.beside_pool, row.result, capacity);
            }
            scans[i].conclude();
        }
        return Ok{};
    };
    // First try the whole range and the common cards in it, then smaller steps around both limits.
    std::vector<std::vector<std::uint64_t>> capacities(scans.size());
    for (std::size_t i = 0; i < scans.size(); ++i) {
        CapacityScan& scan = scans[i].result;
        capacities[i] = between(least_bytes,
                                scan.enough_bytes,
                                is_long ? kCoarse / 3 : kCoarse,
                                page,
                                &scan.step_bytes);
        capacities[i].push_back(scan.enough_bytes);
        for (const std::uint64_t card : common_cards()) {
            if (card > others_bytes && card - others_bytes >= least_bytes &&
                card - others_bytes < scan.enough_bytes) {
                capacities[i].push_back(card - others_bytes);
            }
        }
    }
    if (const Status done = try_all(capacities); !done) {
        return done.error();
    }
    if (!is_long) {
        for (std::size_t i = 0; i < scans.size(); ++i) {
            CapacityScan& scan = scans[i].result;
            capacities[i].clear();
            const std::uint64_t coarse = scan.step_bytes;
            for (const auto& [from, to] :
                 {std::pair(scan.least_fits > coarse ? scan.least_fits - coarse : 0,
                            scan.least_fits),
                  std::pair(scan.largest_fails,
                            std::min(scan.largest_fails + coarse, scan.enough_bytes))}) {
                if (coarse > page && from != 0 && from < to) {
                    const auto more = between(from + page, to, kFine, page, &scan.step_bytes);
                    capacities[i].insert(capacities[i].end(), more.begin(), more.end());
                }
            }
            std::sort(capacities[i].begin(), capacities[i].end());
            capacities[i].erase(std::unique(capacities[i].begin(), capacities[i].end()),
                                capacities[i].end());
        }
        if (const Status done = try_all(capacities); !done) {
            return done.error();
        }
    }
    const Adaptation adaptation = find_adaptation(script);
    std::vector<CapacityScan> results;
    for (Scan& scan : scans) {
        CapacityScan& result = scan.result;
        for (const std::uint64_t card : common_cards()) {
            if (card <= others_bytes) {
                continue;
            }
            const std::uint64_t capacity = card - others_bytes;
            const auto tried =
                std::find(scan.tried.begin(), scan.tried.end(), std::pair(capacity, true));
            const bool enough = std::find(scan.tried.begin(),
                                          scan.tried.end(),
                                          std::pair(result.enough_bytes, true)) != scan.tried.end();
            const bool fits =
                (enough && capacity >= result.enough_bytes) || tried != scan.tried.end();
            if (fits && result.least_card_bytes == 0) {
                result.least_card_bytes = card;
            } else if (!fits && result.least_card_bytes != 0) {
                result.failing_cards.push_back(card);
            }
        }
        if (!context.is_exact()) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = context.why_not_exact();
        } else if (context.adopted_bytes != 0) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = adopted_reason(context.adopted_bytes);
        } else if (adaptation.adapts()) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = "the program adapts to the free memory";
        } else if (scan.capacity_unknown) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = kBesidePoolReason;
        } else if (scan.pages_decide) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = kPagesReason;
        } else if (scan.loses_pool) {
            result.row_class = RowClass::kEstimate;
            result.class_reason = kPoolLostReason;
        } else if (adaptation.ends_with_oom) {
            result.row_class = RowClass::kBound;
            result.bound_kind = BoundKind::kAtLeast;
            result.class_reason =
                "the recording ends at its out-of-memory; later requests are not in the "
                "trace";
        }
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace fragtrace::analyzer
