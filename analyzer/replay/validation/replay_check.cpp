#include "analyzer/replay/validation/replay_check.h"

#include "analyzer/replay/validation/placement_check.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

// Maximum number of comparisons of the whole address map. Each costs time in proportion to the
// number of blocks.
constexpr std::size_t kComparisons = 1000;

// Reports a finished step to the check. Requests are reported when they happen.
void tell(const ReplayScript& script, const Step& step, Pool& pool, PlacementCheck* check) {
    switch (step.kind) {
        case Step::Kind::kAllocate:
            if (step.recorded_oom) {  // if the request was served, its block was freed immediately
                check->released(step.block, {}, pool);
            }
            break;
        case Step::Kind::kRelease: {
            const auto begin = script.pending.begin() + step.first_pending;
            check->released(step.block, {begin, begin + step.pending_count}, pool);
            break;
        }
        case Step::Kind::kComplete:
            check->completed(step.value);
            break;
        case Step::Kind::kEmptyCache:
            check->emptied(pool);
            break;
        case Step::Kind::kPlace:
            check->placed(request_of(step), pool);
            break;
        case Step::Kind::kAdopt:
            check->adopted(script.checkpoints[step.value], pool);
            break;
        case Step::Kind::kStreamEnd:
        case Step::Kind::kMemoryFraction:
        case Step::Kind::kMemoryInfo:
        case Step::Kind::kPoolOptions:
        case Step::Kind::kSettings:
        case Step::Kind::kSegmentUnmapped:
        case Step::Kind::kSegmentMapped:
        case Step::Kind::kUnmappedSegmentEnd:
            break;
        case Step::Kind::kPastPool:
            if (!pool.caches()) {
                check->placed(request_of(step), pool);
            }
            break;
        case Step::Kind::kPastPoolFree:
            if (!pool.caches()) {
                check->released(step.block, {}, pool);
            }
            break;
    }
}

}  // namespace

ReplayCheck check_replay(const ReplayScript& script,
                         Pool& pool,
                         StreamRule streams,
                         std::uint64_t capacity_bytes) {
    ReplayCheck checked;
    PlacementCheck check(streams, capacity_bytes);
    const std::size_t interval = std::max<std::size_t>(1, script.steps.size() / kComparisons);
    const auto finish_step = [&](std::size_t i, Pool& state) {
        tell(script, script.steps[i], state, &check);
        if (i % interval == 0 || i + 1 == script.steps.size()) {
            check.compare(state);
        }
        if (!check.violation().empty() && checked.violation.empty()) {
            checked.violation = check.violation();
            checked.event = script.steps[i].event;
        }
    };
    std::size_t begun = 0;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t i, Pool& state) {
        if (i != 0) {
            finish_step(i - 1, state);
        }
        begun = i + 1;
        return checked.violation.empty();
    };
    hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool& state) {
        check.allocated(request_of(script.steps[i]), served, state);
    };
    checked.result = replay(script, pool, nullptr, hooks);
    const bool adoption_failed = !checked.result.troubles.empty() && begun != 0 &&
                                 script.steps[begun - 1].kind == Step::Kind::kAdopt &&
                                 checked.result.troubles.back().step == begun - 1;
    if (begun == script.steps.size() && begun != 0 && !adoption_failed &&
        checked.violation.empty()) {
        finish_step(begun - 1, pool);
    }
    checked.placements = check.placements();
    checked.comparisons = check.comparisons();
    return checked;
}

}  // namespace fragtrace::analyzer
