#include "analyzer/analysis/whatif/sweep.h"

#include "analyzer/analysis/whatif/equal_replays.h"
#include "analyzer/analysis/whatif/other_pools.h"
#include "analyzer/analysis/whatif/remedies.h"
#include "analyzer/analysis/whatif/reserved_curve.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/support/threads.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace fragtrace::analyzer {
namespace {

void classify(RowClass row_class, BoundKind kind, std::string_view reason, WhatIfRow* row) {
    row->row_class = row_class;
    row->bound_kind = kind;
    row->class_reason = reason;
}

void estimate(std::string_view reason, WhatIfRow* row) {
    classify(RowClass::kEstimate, BoundKind::kNone, reason, row);
}

void classify_by_divergence(Divergence::Kind kind, WhatIfRow* row) {
    switch (kind) {
        case Divergence::Kind::kFails:
            classify(RowClass::kBound,
                     BoundKind::kUntilFailure,
                     "later requests of the program are unknown",
                     row);
            break;
        case Divergence::Kind::kIsServed:
            classify(RowClass::kBound,
                     BoundKind::kAtLeast,
                     "the recording ends at its out-of-memory, and later requests are not in "
                     "the trace",
                     row);
            break;
        case Divergence::Kind::kGoesOn:
            estimate("the program continued after an out-of-memory that does not happen here", row);
            break;
        case Divergence::Kind::kPoolLost:
            estimate(kPoolLostReason, row);
            break;
        case Divergence::Kind::kFreeMemory:
            estimate("the program queries free memory and may request other sizes here", row);
            break;
    }
}

}  // namespace

void classify_row(const SweepContext& context, WhatIfRow* row) {
    const Candidate& candidate = row->candidate;
    row->is_recorded = candidate.change == nullptr && candidate.remedy == Remedy::kSettings &&
                       candidate.config == context.recorded_config &&
                       candidate.capacity_bytes == context.recorded_capacity_bytes &&
                       candidate.pool == "pytorch";
    const std::string_view limit = pool_bound(candidate.pool);
    if (candidate.config == "one_stream:True") {
        estimate(
            "the same with all streams as one: streams without an order between them cannot share "
            "memory",
            row);
    } else if (!limit.empty() && !context.assumed) {
        // A bound depends only on the requests, not on how exactly the recorded pool is replayed.
        classify(RowClass::kBound,
                 find_pool(candidate.pool)->planned ? BoundKind::kAtMost : BoundKind::kAtLeast,
                 limit,
                 row);
    } else if (!context.is_exact()) {
        estimate(context.why_not_exact(), row);
    } else if (row->result.divergence) {
        classify_by_divergence(row->result.divergence->kind, row);
    }
    describe_pool(row);
    classify_remedy(context, row);
    if (row->row_class == RowClass::kExact &&
        row->result.statistics.reserved.peak > context.known_capacity_bytes) {
        estimate("the size of the card is unknown: it may be too small for this", row);
    }
    if (row->row_class != RowClass::kEstimate && row->result.pages_decide) {
        estimate(kPagesReason, row);
    }
    if (row->row_class != RowClass::kEstimate && limit.empty() &&
        !is_capacity_known(context.beside_pool, row->result, candidate.capacity_bytes)) {
        estimate(kBesidePoolReason, row);
    }
    if (context.adopted_bytes != 0 && !row->is_recorded && limit.empty()) {
        const std::string reason = adopted_reason(context.adopted_bytes) +
                                   (row->class_reason.empty() ? "" : "; " + row->class_reason);
        estimate(reason, row);
    }
}

namespace {

// Blocks that are allocated before all others have no place in the recorded order.
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
    if (candidate.may_end_early()) {
        const PoolStatistics& now = pool->statistics();
        hooks.before_step = [&candidate, &now](std::size_t, Pool&) {
            return (!candidate.until_failure || now.ooms == 0) &&
                   now.reserved.peak <= candidate.most_reserved_bytes;
        };
    }
    if (!has_curve(candidate, recorded)) {
        return replay(script, *pool, nullptr, hooks);
    }
    ReservedCurve curve(last_replayed_event(recorded));
    const Gauge& reserved = pool->statistics().reserved;
    hooks.after_request = [&](std::size_t step, const AllocateResult&, Pool&) {
        const std::uint64_t reserved_bytes = reserved.current;
        if (reserved_bytes != curve.last_bytes()) {  // most requests change nothing
            curve.note(script.steps[step].event, reserved_bytes);
        }
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

Status replay_row(const ReplayScript& script,
                  const SweepContext& context,
                  WhatIfRow* row,
                  ReplayLimits* limits) {
    const Candidate& candidate = row->candidate;
    auto pool = make_row_pool(script, context, candidate, candidate.config);
    if (!pool) {
        return pool.error();
    }
    row->result = replay_candidate(script, candidate, pool->get(), &row->reserved_curve);
    // make_row_pool() made it.
    const auto& card = static_cast<const FixedDevice&>((*pool)->device());
    *limits = {card.enough_bytes(), card.largest_bytes()};
    if (const auto lower = lower_end(candidate)) {
        pool = make_row_pool(script, context, candidate, *lower);
        if (!pool) {
            return pool.error();
        }
        row->lower = replay(script, **pool);
    }
    return Ok{};
}

// The candidates from `begin` on that need a replay, longest replays first, so that no core is left
// with a long one at the end. Plans come first, then models of other pools, which may be slow or
// need two replays. Candidates that another row may answer come last.
std::vector<std::size_t> longest_first(const std::vector<Candidate>& candidates,
                                       std::size_t begin,
                                       const EqualReplays& equal) {
    std::vector<std::size_t> order;
    for (std::size_t i = begin; i < candidates.size(); ++i) {
        if (equal.first(i) == i) {
            order.push_back(i);
        }
    }
    const auto effort = [&candidates, &equal](std::size_t i) {
        if (equal.base(i) != i) {
            return -1;
        }
        const PoolDescription& pool = *find_pool(candidates[i].pool);
        return pool.planned ? 3 : pool.moves ? 0 : pool.name == "pytorch" ? 1 : 2;
    };
    std::stable_sort(order.begin(), order.end(), [&effort](std::size_t a, std::size_t b) {
        return effort(a) > effort(b);
    });
    return order;
}

// Wakes waiting threads when it is destroyed, also after an exception.
class Finished {
  public:
    explicit Finished(std::atomic<bool>* flag) : flag_(*flag) {}

    ~Finished() {
        flag_ = true;
        flag_.notify_all();
    }

    Finished(const Finished&) = delete;
    Finished& operator=(const Finished&) = delete;

  private:
    std::atomic<bool>& flag_;
};

}  // namespace

EventIndex last_replayed_event(const ReplayScript& script) {
    return script.steps.empty() ? 0 : script.steps[script.steps.size() - 1].event;
}

Result<std::vector<WhatIfRow>> sweep(const ReplayScript& script,
                                     const std::vector<Candidate>& candidates,
                                     const SweepContext& context,
                                     unsigned threads,
                                     const std::function<void(std::size_t, std::size_t)>& progress,
                                     KnownReplays* known) {
    // Invalid settings are reported before anything is replayed. Plans are not checked here, since
    // making one takes long.
    for (const Candidate& candidate : candidates) {
        const PoolDescription* pool = find_pool(candidate.pool);
        if (pool == nullptr || !pool->planned) {
            const auto made = make_row_pool(script, context, candidate, candidate.config);
            if (!made) {
                return made.error();
            }
        }
    }
    KnownReplays replays = known != nullptr ? std::move(*known) : KnownReplays{};
    std::vector<WhatIfRow>& rows = replays.rows;
    std::vector<ReplayLimits>& limits = replays.limits;
    // Known rows come first, so that they answer the others.
    const std::size_t begin = rows.size();
    std::vector<Candidate> all;
    for (const WhatIfRow& row : rows) {
        all.push_back(row.candidate);
    }
    all.insert(all.end(), candidates.begin(), candidates.end());
    rows.resize(all.size());
    limits.resize(all.size());
    std::vector<Status> outcomes(all.size(), Ok{});
    std::vector<std::atomic<bool>> finished(all.size());
    std::fill_n(finished.begin(), begin, true);
    const EqualReplays equal(script, all);
    const std::vector<std::size_t> order = longest_first(all, begin, equal);
    const auto copy = [&](std::size_t from, std::size_t to) {
        rows[to] = rows[from];
        rows[to].candidate = all[to];
        limits[to] = limits[from];
    };
    // The row that answers row i without a replay; i itself if there is none.
    const auto answer_of = [&](std::size_t i) {
        const std::size_t base = equal.base(i);
        if (base != i) {
            finished[base].wait(false);
        }
        return base != i && outcomes[base] && equal.is_answered(i, limits[base]) ? base : i;
    };
    std::atomic<std::size_t> next{0};
    std::size_t done = candidates.size() - order.size();
    std::mutex progress_mutex;
    const auto work = [&] {
        for (std::size_t at = next++; at < order.size(); at = next++) {
            const std::size_t i = order[at];
            const Finished on_return(&finished[i]);
            if (const std::size_t answer = answer_of(i); answer != i) {
                copy(answer, i);
            } else {
                rows[i].candidate = all[i];
                outcomes[i] = replay_row(script, context, &rows[i], &limits[i]);
            }
            const std::lock_guard lock(progress_mutex);
            ++done;
            if (progress) {
                progress(done, candidates.size());
            }
        }
    };
    const std::size_t wanted = threads != 0 ? threads : processors();
    on_threads(std::min(wanted, order.size()), work);
    for (std::size_t i = begin; i < all.size(); ++i) {
        if (!outcomes[i]) {
            return outcomes[i].error();
        }
        if (const std::size_t first = equal.first(i); first != i) {
            copy(first, i);
        }
    }
    std::vector<WhatIfRow> result(rows.begin() + static_cast<std::ptrdiff_t>(begin), rows.end());
    for (WhatIfRow& row : result) {
        classify_row(context, &row);
    }
    if (known != nullptr) {
        *known = std::move(replays);
    }
    return result;
}

}  // namespace fragtrace::analyzer
