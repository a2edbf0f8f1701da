#include "analyzer/analysis/whatif/remedies.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kEverySteps = 10;
// If there are more steps than this, emptying the cache after each one is not realistic.
constexpr std::size_t kMaxSteps = 100'000;

std::uint32_t stack_of(const Timeline& timeline, EventIndex event) {
    const Origin& origin = timeline.origins[timeline.events[event].origin];
    return origin.python_stack != 0 ? origin.python_stack : origin.native_stack;
}

bool is_request_of_default_pool(const Step& step) {
    return step.kind == Step::Kind::kAllocate && !step.recorded_oom && step.private_pool == 0;
}

std::shared_ptr<const ScriptChange> change_of(ScriptChange::Kind kind,
                                              std::vector<EventIndex> events) {
    return std::make_shared<const ScriptChange>(ScriptChange{kind, std::move(events)});
}

std::vector<EventIndex> every(const std::vector<EventIndex>& ends, std::uint64_t steps) {
    std::vector<EventIndex> some;
    for (std::size_t i = steps - 1; i < ends.size(); i += steps) {
        some.push_back(ends[i]);
    }
    return some;
}

}  // namespace

void find_long_lived(const Timeline& timeline, const ReplayScript& script, RemedyPlan* plan) {
    std::vector<EventIndex> requests;
    // Per event: when the block that it allocates was freed; kNoEvent = never.
    std::vector<EventIndex> released(timeline.events.size(), kNoEvent);
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (is_request_of_default_pool(step)) {
            requests.push_back(step.event);
        } else if (step.kind == Step::Kind::kRelease && step.block < released.size()) {
            released[step.block] = std::min(released[step.block], step.event);
        }
    }
    // Events that a block must outlive: ends of steps, or requests.
    const std::vector<EventIndex>& borders =
        plan->iterations.empty() ? requests : plan->iterations.ends;
    const std::size_t enough =
        plan->iterations.empty() ? std::max<std::size_t>(1, requests.size() / 2) : 2;

    struct Line {
        std::uint64_t blocks = 0;
        std::uint64_t long_lived = 0;
    };

    std::unordered_map<std::uint32_t, Line> lines;
    auto first = borders.begin();  // the first border after the request
    for (const EventIndex request : requests) {
        while (first != borders.end() && *first < request) {
            ++first;
        }
        const auto last = std::lower_bound(first, borders.end(), released[request]);
        // Blocks of the last steps that are never freed do not count as long-lived, since their
        // fate is unknown.
        const bool lives_long = static_cast<std::size_t>(last - first) >= enough;
        Line& line = lines[stack_of(timeline, request)];
        ++line.blocks;
        if (lives_long) {
            ++line.long_lived;
            plan->long_lived.push_back(request);
        }
    }
    for (const EventIndex request : requests) {
        const Line& line = lines[stack_of(timeline, request)];
        if (line.long_lived * 10 >= line.blocks * 9) {
            plan->their_lines.push_back(request);
        }
    }
}

std::vector<EventIndex> requests_of_line(const Timeline& timeline,
                                         const ReplayScript& script,
                                         EventIndex example) {
    std::vector<EventIndex> requests;
    const std::uint32_t stack = stack_of(timeline, example);
    for (std::size_t i = 0; stack != 0 && i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (is_request_of_default_pool(step) && stack_of(timeline, step.event) == stack) {
            requests.push_back(step.event);
        }
    }
    return requests;
}

std::vector<Candidate> remedy_candidates(const ReplayScript& script,
                                         const SweepContext& context,
                                         const RemedyPlan& plan,
                                         std::uint64_t total_bytes,
                                         std::uint64_t others_bytes) {
    std::vector<Candidate> candidates;
    const auto add = [&](std::string name, Remedy remedy) -> Candidate& {
        candidates.push_back({.name = std::move(name),
                              .config = context.recorded_config,
                              .capacity_bytes = context.recorded_capacity_bytes,
                              .total_bytes = total_bytes,
                              .remedy = remedy});
        return candidates.back();
    };
    const auto empty_cache = [&](std::string name, std::vector<EventIndex> events) {
        add(std::move(name), Remedy::kEmptyCache).change =
            change_of(ScriptChange::Kind::kEmptyCache, std::move(events));
    };
    if (!plan.iterations.empty() && plan.iterations.ends.size() <= kMaxSteps) {
        empty_cache(plan.iterations.phase.empty()
                        ? std::string("empty_cache() before each step")
                        : fmt::format("empty_cache() after each {}", plan.iterations.phase),
                    plan.iterations.ends);
        const std::uint64_t steps = plan.every_steps == 0 ? kEverySteps : plan.every_steps;
        if (steps > 1 && plan.iterations.ends.size() >= steps) {
            empty_cache(fmt::format("empty_cache() every {} steps", steps),
                        every(plan.iterations.ends, steps));
        }
    }
    Candidate& uncached = add("PYTORCH_NO_CUDA_MEMORY_CACHING=1", Remedy::kCachingOff);
    uncached.pool = "none";
    uncached.config.clear();
    if (others_bytes != 0) {
        add("no other holders", Remedy::kOthersGone).capacity_bytes += others_bytes;
    }
    if (!can_move_blocks(script)) {
        return candidates;
    }
    const auto move = [&](std::string name, Remedy remedy, const std::vector<EventIndex>& events) {
        // Requests of libraries outside the pool have a fixed place among the requests that are not
        // moved.
        const bool out_of_order = remedy == Remedy::kMoveFirst && !script.libraries.empty();
        if (!events.empty() && !out_of_order) {
            add(std::move(name), remedy).change =
                change_of(remedy == Remedy::kOwnPool ? ScriptChange::Kind::kOwnPool
                                                     : ScriptChange::Kind::kFirst,
                          events);
        }
    };
    move("long-lived blocks allocated first", Remedy::kMoveFirst, plan.long_lived);
    move("long-lived blocks in a MemPool", Remedy::kOwnPool, plan.their_lines);
    if (!plan.culprit_label.empty()) {
        move(plan.culprit_label + " allocated first", Remedy::kMoveFirst, plan.culprit);
        move(plan.culprit_label + " in a MemPool", Remedy::kOwnPool, plan.culprit_line);
    }
    return candidates;
}

void classify_remedy(const SweepContext& context, WhatIfRow* row) {
    const std::string before = row->class_reason.empty() ? "" : "; " + row->class_reason;
    const auto estimate = [&](const char* reason) {
        row->row_class = RowClass::kEstimate;
        row->bound_kind = BoundKind::kNone;
        row->class_reason = reason + before;
    };
    switch (row->candidate.remedy) {
        case Remedy::kSettings:
        case Remedy::kEmptyCache:
            break;
        case Remedy::kCachingOff: {
            // describe_pool() marked the row as an estimate, as for any other pool. But this pool
            // has no rules of its own: every request goes to the driver.
            const bool served = row->result.troubles.empty() && !row->result.divergence &&
                                !row->result.pages_decide;
            row->row_class = served && context.is_exact() ? RowClass::kExact : RowClass::kEstimate;
            row->bound_kind = BoundKind::kNone;
            row->class_reason = served ? context.why_not_exact() : kPagesReason;
            row->usable_reason = "PYTORCH_NO_CUDA_MEMORY_CACHING=1 in the environment";
            break;
        }
        case Remedy::kMoveFirst:
            estimate("the same requests, with these moved before all others");
            break;
        case Remedy::kOwnPool:
            estimate("only these requests are made under use_mem_pool");
            break;
        case Remedy::kOthersGone:
            if (row->row_class != RowClass::kEstimate) {
                row->row_class = RowClass::kBound;
                row->bound_kind = BoundKind::kAtMost;
            }
            row->class_reason = "other holders cannot free more than they hold" + before;

            break;
    }
}

}  // namespace fragtrace::analyzer
