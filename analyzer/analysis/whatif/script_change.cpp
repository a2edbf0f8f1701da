#include "analyzer/analysis/whatif/script_change.h"

#include <algorithm>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

// Whether an event is one of `events`. Fast if the requested events ascend, as requests do.
class EventSet {
  public:
    explicit EventSet(const std::vector<EventIndex>& events)
        : events_(events), at_(events.begin()) {}

    bool contains(EventIndex event) {
        if (at_ != events_.begin() && *std::prev(at_) >= event) {
            at_ = events_.begin();
        }
        while (at_ != events_.end() && *at_ < event) {
            ++at_;
        }
        return at_ != events_.end() && *at_ == event;
    }

  private:
    const std::vector<EventIndex>& events_;  // ascending
    std::vector<EventIndex>::const_iterator at_;
};

// True for requests that succeeded in the recorded run and that the program did not send to a
// private pool.
bool can_move(const Step& step) {
    return step.kind == Step::Kind::kAllocate && !step.recorded_oom && step.private_pool == 0;
}

StepTable with_empty_cache(const ReplayScript& script, const std::vector<EventIndex>& after) {
    StepTable steps;
    std::size_t next = 0;
    const auto empty = [&](EventIndex event) {
        steps.push_back({.kind = Step::Kind::kEmptyCache, .event = event});
    };
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const EventIndex event = script.steps[i].event;
        for (; next < after.size() && after[next] < event; ++next) {
            empty(after[next]);
        }
        steps.append(script.steps, i);
    }
    for (; next < after.size(); ++next) {
        empty(after[next]);
    }
    return steps;
}

StepTable with_blocks_first(const ReplayScript& script, const std::vector<EventIndex>& blocks) {
    StepTable steps;
    EventSet first_blocks(blocks);
    EventSet moved_blocks(blocks);
    bool moved = false;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (!moved && step.kind == Step::Kind::kAllocate) {
            moved = true;
            for (std::size_t j = i; j < script.steps.size(); ++j) {
                Step first = script.steps[j];
                if (can_move(first) && first_blocks.contains(first.event)) {
                    first.refusal_count = 0;
                    steps.push_back(first);
                }
            }
        }
        if (!can_move(step) || !moved_blocks.contains(step.event)) {
            steps.append(script.steps, i);
        }
    }
    return steps;
}

StepTable with_own_pool(const ReplayScript& script, const std::vector<EventIndex>& blocks) {
    std::uint32_t pool = 0;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        pool = std::max(pool, script.steps[i].private_pool);
    }
    ++pool;
    StepTable steps;
    EventSet own_blocks(blocks);
    bool known = false;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        Step step = script.steps[i];
        if (!can_move(step) || !own_blocks.contains(step.event)) {
            steps.append(script.steps, i);
            continue;
        }
        if (!known) {
            known = true;
            steps.push_back(
                {.kind = Step::Kind::kPoolOptions, .event = step.event, .private_pool = pool});
        }
        step.private_pool = pool;
        step.in_capture = script.rules.routing_is_capture;
        steps.push_back(step);
    }
    return steps;
}

}  // namespace

bool can_move_blocks(const ReplayScript& script) {
    bool requested = false;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step::Kind kind = script.steps[i].kind;
        requested = requested || kind == Step::Kind::kAllocate;
        if (requested && kind == Step::Kind::kAdopt) {
            return false;
        }
    }
    return true;
}

ReplayScript changed_script(const ReplayScript& script, const ScriptChange& change) {
    ReplayScript changed;
    changed.source = script.source;
    changed.device = script.device;
    changed.pending = script.pending;
    changed.refusals = script.refusals;
    changed.streams = script.streams;
    changed.checkpoints = script.checkpoints;
    changed.first_settings = script.first_settings;
    changed.settings = script.settings;
    changed.libraries = script.libraries;
    changed.rules = script.rules;
    changed.requested_unknown = script.requested_unknown;
    changed.stream_unknown = script.stream_unknown;
    changed.rewinds = script.rewinds;
    changed.stream_ordered = script.stream_ordered;
    changed.records_empty_cache = script.records_empty_cache;
    switch (change.kind) {
        case ScriptChange::Kind::kNone:
            changed.steps = script.steps;
            break;
        case ScriptChange::Kind::kEmptyCache:
            changed.steps = with_empty_cache(script, change.events);
            break;
        case ScriptChange::Kind::kFirst:
            changed.steps = with_blocks_first(script, change.events);
            break;
        case ScriptChange::Kind::kOwnPool:
            changed.steps = with_own_pool(script, change.events);
            break;
    }
    return changed;
}

ReplayScript without_failures(const ReplayScript& script) {
    ReplayScript served = script;
    served.steps = {};
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        if (const Step step = script.steps[i]; !step.recorded_oom) {
            served.steps.push_back(step);
        }
    }
    return served;
}

}  // namespace fragtrace::analyzer
