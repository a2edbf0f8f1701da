#include "analyzer/analysis/holders/run_history.h"

#include "analyzer/trace/possible_event.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostStacks = 20'000;

std::vector<Pass> find_passes(const Requests& requests, const std::vector<StackHistory>& stacks) {
    std::vector<Pass> passes;
    unsigned before = 0xffff;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const unsigned kind =
            stacks[requests.stacks[i]].marks & (unsigned{kMarkOptimizer} | unsigned{kMarkBackward});
        if (kind != before) {
            passes.push_back({requests.events[i], static_cast<std::uint16_t>(kind)});
            before = kind;
        }
    }
    return passes;
}

void look_at_stacks(const Requests& requests, StackMarks* marks, RunHistory* history) {
    history->stacks.resize(requests.origins.size());
    for (const std::uint32_t stack : requests.stacks) {
        ++history->stacks[stack].requests;
    }
    std::size_t looked_at = 0;
    for (std::size_t stack = 0; stack < history->stacks.size(); ++stack) {
        if (history->stacks[stack].requests == 0) {
            continue;
        }
        if (++looked_at <= kMostStacks) {
            history->stacks[stack].marks = marks->of(requests.origins[stack]);
        } else {
            ++history->stacks_left_out;
            history->stacks[stack].frames_read = false;
        }
    }
}

}  // namespace

RunHistory run_history(const Timeline& timeline, DeviceId device, bool blocks, StackMarks* marks) {
    RunHistory history;
    history.requests = requests_of(timeline, device, blocks);
    const Requests& requests = history.requests;
    history.iterations = find_iterations(timeline, requests);
    look_at_stacks(requests, marks, &history);
    history.passes = find_passes(requests, history.stacks);
    const std::vector<Pass>& passes = history.passes;
    const std::vector<EventIndex>& iterations = history.iterations.begins;
    std::size_t pass = 0;       // number of passes that begin at or before the request
    std::size_t iteration = 0;  // the same for iterations
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const EventIndex born = requests.events[i];
        while (pass < passes.size() && passes[pass].begin <= born) {
            ++pass;
        }
        while (iteration < iterations.size() && iterations[iteration] <= born) {
            ++iteration;
        }
        const EventIndex ended = timeline.partner[born];
        const EventIndex next_pass = pass < passes.size() ? passes[pass].begin : kNoEvent;
        const EventIndex next_iteration =
            iteration < iterations.size() ? iterations[iteration] : kNoEvent;
        // Blocks that are live at the end of the recording, in its last pass or iteration, have no
        // known fate.
        StackHistory& stack = history.stacks[requests.stacks[i]];
        stack.ended_in_pass += ended < next_pass ? 1 : 0;
        stack.outlived_pass += ended > next_pass ? 1 : 0;
        stack.ended_in_iteration += iteration != 0 && ended < next_iteration ? 1 : 0;
        stack.outlived_iteration += ended > next_iteration ? 1 : 0;
        if (ended > next_iteration) {
            const auto bytes = static_cast<std::int64_t>(
                std::min(allocated_bytes(timeline.events[born]), kMostDeviceBytes));
            history.changes.push_back(
                {static_cast<std::uint32_t>(iteration + 1), requests.labelled(i), bytes});
            const std::size_t last = history.iterations.of(ended);
            if (ended != kNoEvent && last < iterations.size()) {
                history.changes.push_back(
                    {static_cast<std::uint32_t>(last + 1), requests.labelled(i), -bytes});
            }
        }
    }
    std::stable_sort(
        history.changes.begin(),
        history.changes.end(),
        [](const BoundaryChange& a, const BoundaryChange& b) { return a.iteration < b.iteration; });
    return history;
}

void add_user_categories(RuleFinder* rules, RunHistory* history) {
    const Requests& requests = history->requests;
    history->rules.reserve(requests.labelled_stacks.size());
    for (const LabelledStack& labelled : requests.labelled_stacks) {
        const StackHistory& stack = history->stacks[labelled.stack];
        history->rules.push_back(
            stack.requests == 0
                ? kNoRule
                : rules->rule_of(labelled.origin, category_of(stack), stack.frames_read));
    }
    history->rule_uses = rules->uses();
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::uint16_t rule = history->rules[requests.labelled(i)];
        if (rule != kNoRule) {
            ++history->rule_uses[rule].requests;
        }
    }
}

}  // namespace fragtrace::analyzer
