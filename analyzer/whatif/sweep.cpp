#include "analyzer/whatif/sweep.h"

#include "analyzer/pools/registry.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/support/threads.h"
#include "analyzer/whatif/alike.h"
#include "analyzer/whatif/reserved_curve.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::uint64_t count(const ReplayResult& result, bool retries) {
    return static_cast<std::uint64_t>(
        std::count_if(result.troubles.begin(), result.troubles.end(), [retries](const Trouble& t) {
            return (t.outcome == Outcome::kRetryOk) == retries;
        }));
}

std::pair<RowClass, const char*> class_by_parting(Parting::Kind kind) {
    switch (kind) {
        case Parting::Kind::kFails:
            return {RowClass::kBound, "up to the first out-of-memory; what follows may differ"};
        case Parting::Kind::kIsServed:
            return {RowClass::kBound, "at least: the record ends at its out-of-memory"};
        case Parting::Kind::kGoesOn:
            return {RowClass::kEstimate,
                    "the program went on after an out-of-memory that does not happen here"};
        case Parting::Kind::kFreeMemory:
            return {RowClass::kEstimate,
                    "the program looks at free memory and may ask for other things here"};
    }
    return {RowClass::kEstimate, ""};
}

}  // namespace

void classify_row(const SweepContext& context, WhatIfRow* row) {
    const Candidate& candidate = row->candidate;
    row->is_recorded = candidate.change == nullptr && candidate.remedy == Remedy::kSettings &&
                       candidate.config == context.recorded_config &&
                       candidate.capacity_bytes == context.recorded_capacity_bytes &&
                       candidate.pool == "pytorch";
    const std::string_view bound = pool_bound(candidate.pool);
    if (candidate.config == "one_stream:True") {
        row->row_class = RowClass::kEstimate;
        row->class_reason =
            "the same, if all streams were one: no bytes may be shared across them "
            "where nothing orders them";
    } else if (!bound.empty() && !context.assumed) {
        row->row_class = RowClass::kBound;
        row->class_reason = bound;
    } else if (!context.fidelity_exact) {
        row->row_class = RowClass::kEstimate;
        row->class_reason = "the recorded settings do not replay exactly";
    } else if (context.assumed) {
        row->row_class = RowClass::kEstimate;
        row->class_reason = "requested sizes or streams had to be assumed";
    } else if (context.pending_assumed) {
        row->row_class = RowClass::kEstimate;
        row->class_reason =
            "cross-stream frees were assumed to complete at other times (--pending)";
    } else if (row->result.parting) {
        std::tie(row->row_class, row->class_reason) = class_by_parting(row->result.parting->kind);
    }
    describe_pool(row);
    classify_remedy(row);
    if (candidate.remedy == Remedy::kCachingOff && context.assumed) {
        row->row_class = RowClass::kEstimate;
        row->class_reason = "requested sizes or streams had to be assumed";
    }
}

std::string_view row_class_name(RowClass row_class) {
    switch (row_class) {
        case RowClass::kExact:
            return "exact";
        case RowClass::kBound:
            return "bound";
        case RowClass::kEstimate:
            return "estimate";
    }
    return "estimate";
}

std::uint64_t WhatIfRow::ooms() const {
    return count(result, false) + result.libraries_failed;
}

std::uint64_t WhatIfRow::retries() const {
    return count(result, true);
}

namespace {

// Blocks that are asked for before all others have no place in the order of the record.
bool has_curve(const Candidate& candidate, const ReplayScript& script) {
    return candidate.remedy != Remedy::kMoveFirst && !candidate.until_failure &&
           !script.steps.empty();
}

ReplayResult replay_candidate(const ReplayScript& recorded,
                              const Candidate& candidate,
                              Pool* pool,
                              std::vector<std::uint64_t>* reserved_curve) {
    std::optional<ReplayScript> changed;
    if (candidate.change != nullptr) {
        changed = changed_script(recorded, *candidate.change);
    }
    const ReplayScript& script = changed ? *changed : recorded;
    ReplayHooks hooks;
    if (candidate.until_failure) {
        hooks.before_step = [](std::size_t, Pool& served_by) {
            return served_by.statistics().ooms == 0;
        };
    }
    if (!has_curve(candidate, recorded)) {
        return replay(script, *pool, nullptr, hooks);
    }
    ReservedCurve curve(last_replayed_event(recorded));
    hooks.after_request = [&](std::size_t step, const AllocateResult&, Pool& served_by) {
        curve.note(script.steps[step].event, served_by.statistics().reserved.current);
    };
    ReplayResult result = replay(script, *pool, nullptr, hooks);
    *reserved_curve = curve.take();
    return result;
}

Result<std::unique_ptr<Pool>> make_row_pool(const ReplayScript& script,
                                            const SweepContext& context,
                                            const Candidate& candidate,
                                            std::string_view config) {
    return make_pool_for(
        script,
        candidate.pool,
        config,
        std::make_unique<FixedDevice>(
            candidate.total_bytes, candidate.capacity_bytes, context.driver_page_bytes));
}

Status replay_row(const ReplayScript& script, const SweepContext& context, WhatIfRow* row) {
    const Candidate& candidate = row->candidate;
    auto pool = make_row_pool(script, context, candidate, candidate.config);
    if (!pool) {
        return pool.error();
    }
    row->result = replay_candidate(script, candidate, pool->get(), &row->reserved_curve);
    if (const auto lower = lower_end(candidate)) {
        pool = make_row_pool(script, context, candidate, *lower);
        if (!pool) {
            return pool.error();
        }
        row->lower = replay(script, **pool);
    }
    return Ok{};
}

// Those to be replayed, so that no core is left with a long one at the end: plans, then models of
// other pools, which may be slow or have two ends.
std::vector<std::size_t> longest_first(const std::vector<Candidate>& candidates,
                                       const std::vector<std::size_t>& like) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (like[i] == i) {
            order.push_back(i);
        }
    }
    const auto effort = [&candidates](std::size_t i) {
        const PoolDescription& pool = *find_pool(candidates[i].pool);
        return pool.planned ? 3 : pool.moves ? 0 : pool.name == "pytorch" ? 1 : 2;
    };
    std::stable_sort(order.begin(), order.end(), [&effort](std::size_t a, std::size_t b) {
        return effort(a) > effort(b);
    });
    return order;
}

}  // namespace

EventIndex last_replayed_event(const ReplayScript& script) {
    return script.steps.empty() ? 0 : script.steps[script.steps.size() - 1].event;
}

Result<std::vector<WhatIfRow>> sweep(
    const ReplayScript& script,
    const std::vector<Candidate>& candidates,
    const SweepContext& context,
    unsigned threads,
    const std::function<void(std::size_t, std::size_t)>& progress) {
    // Wrong settings are told before anything is replayed. A plan is made once, where it is used.
    for (const Candidate& candidate : candidates) {
        const PoolDescription* pool = find_pool(candidate.pool);
        if (pool == nullptr || !pool->planned) {
            const auto made = make_row_pool(script, context, candidate, candidate.config);
            if (!made) {
                return made.error();
            }
        }
    }
    std::vector<WhatIfRow> rows(candidates.size());
    std::vector<Status> outcomes(candidates.size(), Ok{});
    const std::vector<std::size_t> like = replayed_like(script, candidates);
    const std::vector<std::size_t> order = longest_first(candidates, like);
    std::atomic<std::size_t> next{0};
    std::size_t done = candidates.size() - order.size();
    std::mutex progress_mutex;
    const auto work = [&] {
        for (std::size_t at = next++; at < order.size(); at = next++) {
            const std::size_t i = order[at];
            rows[i].candidate = candidates[i];
            outcomes[i] = replay_row(script, context, &rows[i]);
            const std::lock_guard lock(progress_mutex);
            ++done;
            if (progress) {
                progress(done, candidates.size());
            }
        }
    };
    const std::size_t wanted = threads != 0 ? threads : processors();
    on_threads(std::min(wanted, order.size()), work);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!outcomes[i]) {
            return outcomes[i].error();
        }
        if (like[i] != i) {
            rows[i] = rows[like[i]];
            rows[i].candidate = candidates[i];
        }
    }
    for (WhatIfRow& row : rows) {
        classify_row(context, &row);
    }
    return rows;
}

const WhatIfRow* recorded_row(const std::vector<WhatIfRow>& rows) {
    const auto found = std::find_if(
        rows.begin(), rows.end(), [](const WhatIfRow& row) { return row.is_recorded; });
    return found == rows.end() ? nullptr : &*found;
}

}  // namespace fragtrace::analyzer
