#include "analyzer/analysis/whatif/rest_of_iteration.h"

#include "analyzer/analysis/whatif/iteration_requests.h"
#include "analyzer/analysis/whatif/iteration_sizes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostIterations = 64;  // earlier steps examined
constexpr std::size_t kMostObserved = 4;  // steps of different sizes from which sizes are predicted
// Two steps have the same shape if this part of their requests up to the place is equal.
constexpr double kSame = 0.95;
constexpr double kAlike = 0.75;  // least similarity of a basis if no step has the same shape

class Builder {
  public:
    Builder(const Timeline& timeline,
            const ReplayScript& script,
            const Iterations& iterations,
            EventIndex failed)
        : timeline_(timeline),
          script_(script),
          iterations_(iterations),
          requests_(requests_of(timeline, script.device, true)) {
        rest_.failed = failed;
    }

    RestOfIteration build() {
        if (!find_failure()) {
            return std::move(rest_);
        }
        choose_basis();
        if (!rest_.known()) {
            return std::move(rest_);
        }
        copy_up_to_failure();
        if (add_rest()) {
            settle_sizes();
        }
        return std::move(rest_);
    }

  private:
    bool none(std::string why) {
        rest_.why_not = std::move(why);
        return false;
    }

    bool find_failure() {
        for (std::size_t i = 0; i < script_.steps.size() && failed_at_ == kNowhere; ++i) {
            const Step step = script_.steps[i];
            if (step.kind == Step::Kind::kAllocate && step.recorded_oom) {
                if (step.event == rest_.failed) {
                    failed_at_ = i;
                } else {
                    failed_before_.push_back(step.event);
                }
            }
        }
        if (failed_at_ == kNowhere) {
            return none("the failed request did not go to the pool");
        }
        if (script_.rewinds != 0) {
            return none("CUDA graph pools are reset to checkpoints in this step");
        }
        rest_.iteration = iterations_.of(rest_.failed);
        if (rest_.iteration < 2) {
            return none("no earlier step is complete");
        }
        failed_iteration_ =
            iteration_requests(requests_, iterations_, rest_.iteration, rest_.failed);
        const std::optional<std::uint32_t> stack = stack_of(timeline_, requests_, rest_.failed);
        if (!stack) {
            return none("no earlier request came from the same line");
        }
        failed_key_ = key_of(*stack, failed_iteration_.count(*stack));
        return true;
    }

    [[nodiscard]] bool has_failure(const IterationRequests& iteration) const {
        const auto inside = [&iteration](EventIndex event) {
            return event >= iteration.begin && event < iteration.end;
        };
        return std::any_of(failed_before_.begin(), failed_before_.end(), inside) ||
               std::any_of(script_.libraries.begin(),
                           script_.libraries.end(),
                           [&inside](const auto& request) { return inside(request.event); });
    }

    [[nodiscard]] std::uint64_t size_of(EventIndex request) const {
        const Event event = timeline_.events[request];
        return event.size_bytes == kUnknown64 ? event.extra : event.size_bytes;
    }

    void choose_basis() {
        double best = 0;
        for (std::size_t number = rest_.iteration; --number > 0;) {
            if (rest_.iteration - number > kMostIterations) {
                break;
            }
            IterationRequests iteration = iteration_requests(requests_, iterations_, number);
            const auto place = iteration.place_of(failed_key_);
            if (!place || has_failure(iteration)) {
                continue;
            }
            const double like = likeness(failed_iteration_, iteration, *place);
            if (like >= kAlike && like > best && best < kSame) {
                best = like;
                rest_.basis = number;
                place_ = *place;
                basis_ = iteration;
            }
            if (like >= kSame) {
                observe(std::move(iteration));
            }
        }
        if (rest_.basis == 0) {
            none("no complete earlier step made the same requests up to this one");
        }
    }

    // Keeps steps of different total sizes, which show how sizes change together.
    void observe(IterationRequests iteration) {
        std::uint64_t asked = 0;
        for (const EventIndex request : iteration.events) {
            asked += size_of(request);
        }
        const bool known = std::find(observed_asked_.begin(), observed_asked_.end(), asked) !=
                           observed_asked_.end();
        if (observed_.size() < kMostObserved && !known) {
            observed_asked_.push_back(asked);
            observed_.push_back(std::move(iteration));
        }
    }

    void copy_up_to_failure() {
        ReplayScript& made = rest_.script;
        made = script_;
        made.steps = StepTable();
        made.obtained.clear();
        made.libraries.erase(std::remove_if(made.libraries.begin(),
                                            made.libraries.end(),
                                            [this](const LibraryRequest& request) {
                                                return request.event > rest_.failed;
                                            }),
                             made.libraries.end());
        std::set<PendingId> outstanding;
        for (std::size_t i = 0; i <= failed_at_; ++i) {
            Step step = script_.steps[i];
            if (step.kind == Step::Kind::kAllocate) {
                if (step.recorded_oom && i != failed_at_) {
                    continue;
                }
                at_step_[step.event] = made.steps.size();
            }
            if (i == failed_at_) {
                step.recorded_oom = false;
                step.refusal_count = 0;
            }
            for (std::uint32_t n = 0; n < step.pending_count; ++n) {
                const PendingId id = script_.pending[step.first_pending + n].id;
                next_pending_ = std::max(next_pending_, id);
                outstanding.insert(id);
            }
            if (step.kind == Step::Kind::kComplete) {
                outstanding.erase(step.value);
            }
            made.steps.push_back(step);
        }
        for (const PendingId id : outstanding) {
            push({.kind = Step::Kind::kComplete, .value = id});
        }
    }

    // Matches blocks of the basis, and of up to two steps before it, with the same requests as many
    // steps later.
    void match_blocks() {
        blocks_.emplace(basis_.events[place_], rest_.failed);
        for (std::size_t back = 0; back <= 2; ++back) {
            if (basis_.number <= back || failed_iteration_.number - back <= basis_.number - back) {
                break;
            }
            const std::size_t then = basis_.number - back;
            const std::size_t now = failed_iteration_.number - back;
            const IterationRequests before =
                back == 0 ? basis_ : iteration_requests(requests_, iterations_, then);
            const IterationRequests after =
                back == 0 ? failed_iteration_ : iteration_requests(requests_, iterations_, now);
            for (std::size_t i = 0; i < before.keys.size(); ++i) {
                if (const auto same = after.find(before.keys[i]); same) {
                    blocks_.emplace(before.events[i], after.events[*same]);
                }
            }
        }
    }

    [[nodiscard]] bool is_live(EventIndex request) const {
        return request == rest_.failed || timeline_.partner[request] > rest_.failed;
    }

    // Adds the requests and frees of the basis after the place. False if they are not all known.
    bool add_rest() {
        match_blocks();
        const EventIndex place = basis_.events[place_];
        // Free the blocks of this step that the basis had freed by this place.
        for (std::size_t i = 0; i < place_; ++i) {
            const auto same = failed_iteration_.find(basis_.keys[i]);
            if (same && timeline_.partner[basis_.events[i]] < place &&
                is_live(failed_iteration_.events[*same])) {
                push({.kind = Step::Kind::kRelease, .block = failed_iteration_.events[*same]});
            }
        }
        for (std::size_t i = 0; i < script_.steps.size(); ++i) {
            const Step step = script_.steps[i];
            if (step.event <= place || step.event >= basis_.end) {
                continue;
            }
            switch (step.kind) {
                case Step::Kind::kAllocate:
                    // The first step allocates lasting memory (an optimizer's state) only once.
                    if (basis_.number != 1 || !is_live(step.event)) {
                        allocate(step);
                    }
                    break;
                case Step::Kind::kRelease:
                    release(step);
                    break;
                case Step::Kind::kComplete:
                    if (const auto id = pending_.find(step.value); id != pending_.end()) {
                        push({.kind = Step::Kind::kComplete, .value = id->second});
                    }
                    break;
                case Step::Kind::kEmptyCache:
                case Step::Kind::kStreamEnd:
                case Step::Kind::kMemoryFraction:
                case Step::Kind::kSettings:
                case Step::Kind::kPoolOptions:
                    push(step);
                    break;
                case Step::Kind::kMemoryInfo:
                    break;
                case Step::Kind::kPlace:
                case Step::Kind::kAdopt:
                    return none(
                        "the recording was stopped during the step that would be its basis");
                case Step::Kind::kPastPool:
                case Step::Kind::kPastPoolFree:
                    return none("caching was off during the step that would be its basis");
                case Step::Kind::kSegmentUnmapped:
                case Step::Kind::kSegmentMapped:
                case Step::Kind::kUnmappedSegmentEnd:
                    return none(
                        "memory of the pool was unmapped during the step that would be its basis");
            }
        }
        return true;
    }

    void push(Step step) {
        step.event = rest_.failed;
        step.refusal_count = 0;
        rest_.script.steps.push_back(step);
    }

    void allocate(Step step) {
        const auto block = static_cast<BlockId>(timeline_.events.size() + added_.size());
        added_.emplace_back(rest_.script.steps.size(), step.event);
        blocks_[step.block] = block;
        step.block = block;
        push(step);
        ++rest_.requests;
    }

    void release(Step step) {
        const auto block = blocks_.find(step.block);
        const bool added = block != blocks_.end() && block->second >= timeline_.events.size();
        if (block == blocks_.end() || (!added && !is_live(block->second))) {
            return;
        }
        const auto first = static_cast<std::uint32_t>(rest_.script.pending.size());
        for (std::uint32_t i = 0; i < step.pending_count; ++i) {
            Pool::PendingOn pending = script_.pending[step.first_pending + i];
            pending_[pending.id] = ++next_pending_;
            pending.id = next_pending_;
            rest_.script.pending.push_back(pending);
        }
        step.first_pending = first;
        step.block = block->second;
        push(step);
    }

    // Sets the sizes of added requests, and notes which sizes of the step differ from the basis.
    void settle_sizes() {
        std::vector<const IterationRequests*> observed = {&basis_};
        for (const IterationRequests& iteration : observed_) {
            if (iteration.number != basis_.number && observed.size() < kMostObserved) {
                observed.push_back(&iteration);
            }
        }
        const auto sizes_of = [&](RequestKey key) {
            SizesThen sizes;
            for (const IterationRequests* iteration : observed) {
                const auto at = iteration->find(key);
                sizes.push_back(at ? size_of(iteration->events[*at]) : 0);
            }
            return sizes;
        };
        IterationSizes sizes;
        const auto know = [&](RequestKey key, EventIndex now) {
            const auto then = basis_.find(key);
            if (!then) {
                return;
            }
            const std::uint64_t size = now == rest_.failed ? failed_bytes() : size_of(now);
            const std::uint64_t before = size_of(basis_.events[*then]);
            sizes.know(sizes_of(key), size);
            if (size != before) {
                rest_.asked_bytes += size;
                rest_.asked_bytes_then += before;
                rest_.sizes_then.emplace_back(at_step_[now], before);
            }
        };
        for (std::size_t i = 0; i < failed_iteration_.keys.size(); ++i) {
            know(failed_iteration_.keys[i], failed_iteration_.events[i]);
        }
        know(basis_.keys[place_], rest_.failed);
        know_lasting(&sizes);
        std::unordered_map<EventIndex, std::size_t> in_basis;
        for (std::size_t i = 0; i < basis_.events.size(); ++i) {
            in_basis[basis_.events[i]] = i;
        }
        for (const auto& [at, request] : added_) {
            Step step = rest_.script.steps[at];
            const auto place = in_basis.find(request);
            const std::uint64_t before = step.value;
            step.value = place == in_basis.end()
                             ? before
                             : sizes.of(sizes_of(basis_.keys[place->second]), rest_.scale());
            rest_.script.steps.set(at, step);
            if (step.value != before) {
                rest_.sizes_then.emplace_back(at, before);
            }
        }
    }

    [[nodiscard]] std::uint64_t failed_bytes() const { return script_.steps[failed_at_].value; }

    // Parameters and similar blocks keep their size. So do blocks of the same size that are made
    // for them.
    void know_lasting(IterationSizes* sizes) const {
        for (const EventIndex request : requests_.events) {
            if (request >= iterations_.begins.front()) {
                break;
            }
            if (is_live(request)) {
                sizes->know_lasting(size_of(request));
            }
        }
    }

    static constexpr std::size_t kNowhere = ~std::size_t{0};

    const Timeline& timeline_;
    const ReplayScript& script_;
    const Iterations& iterations_;
    const Requests requests_;
    RestOfIteration rest_;
    std::size_t failed_at_ = kNowhere;  // index into the script's steps
    std::vector<EventIndex> failed_before_;
    IterationRequests failed_iteration_;  // requests up to the failed one
    RequestKey failed_key_ = 0;
    IterationRequests basis_;
    std::size_t place_ = 0;  // place of the failed request in the basis
    std::vector<IterationRequests> observed_;
    std::vector<std::uint64_t> observed_asked_;
    std::unordered_map<EventIndex, BlockId> blocks_;  // block of the basis: block now
    // Event of a request: index into the script's steps.
    std::unordered_map<EventIndex, std::size_t> at_step_;
    std::unordered_map<PendingId, PendingId> pending_;
    PendingId next_pending_ = 0;
    // Index in the new script, event in the basis.
    std::vector<std::pair<std::size_t, EventIndex>> added_;
};

}  // namespace

RestOfIteration rest_of_iteration(const Timeline& timeline,
                                  const ReplayScript& script,
                                  const Iterations& iterations,
                                  EventIndex failed) {
    return Builder(timeline, script, iterations, failed).build();
}

ReplayScript resized(const RestOfIteration& rest, double share) {
    ReplayScript script = rest.script;
    for (const auto& [at, then] : rest.sizes_then) {
        Step step = script.steps[at];
        const double before = static_cast<double>(then);
        const double bytes = before + share * (static_cast<double>(step.value) - before);
        step.value = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes)));
        script.steps.set(at, step);
    }
    return script;
}

}  // namespace fragtrace::analyzer
