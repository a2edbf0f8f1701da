#include "analyzer/analysis/holders/growth.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kLeastSteps = 3;  // at least one more start than this is compared
// Growth slows down if it falls below 1 / kSlower per iteration.
constexpr std::int64_t kSlower = 4;

// The first start that is compared. Memory that is allocated once is allocated by then.
std::size_t first_compared(std::size_t iterations) {
    return iterations >= 3 + kLeastSteps ? 3 : 2;
}

// True if at least a fifth of the blocks with known fate ended in the iteration that requested
// them.
bool ends_in_iterations(const RunHistory& history) {
    std::uint64_t ended = 0;
    std::uint64_t outlived = 0;
    for (const StackHistory& stack : history.stacks) {
        ended += stack.ended_in_iteration;
        outlived += stack.outlived_iteration;
    }
    return ended * 5 >= ended + outlived;
}

// The last start that is compared: that of the iteration with the first failure, as the run may
// change after it. If that leaves too few starts, the last one of the run.
std::size_t last_compared(const std::vector<EventIndex>& begins, EventIndex first_failed) {
    const auto after = std::upper_bound(begins.begin(), begins.end(), first_failed);
    const auto count = static_cast<std::size_t>(after - begins.begin());
    return count < first_compared(count) + kLeastSteps ? begins.size() : count;
}

struct StackGrowth {
    std::int64_t at_first = 0;
    std::int64_t at_middle = 0;
    std::int64_t now = 0;
    std::int64_t change = 0;  // change at the current start
    std::uint32_t times_grown = 0;
    bool fell = false;
    std::uint64_t at_failure = 0;  // live bytes
};

// The compared starts, as numbers of iterations.
struct Compared {
    std::size_t first = 0;
    std::size_t middle = 0;
    std::size_t last = 0;
};

// Follows the live bytes of `groups` groups of blocks. `group_of(number)` is the group of a stack
// and label.
template <typename GroupOf>
std::vector<StackGrowth> follow(const std::vector<BoundaryChange>& changes,
                                const Compared& compared,
                                std::size_t groups,
                                GroupOf group_of) {
    std::vector<StackGrowth> stacks(groups);
    std::vector<std::uint32_t> changed;
    for (std::size_t i = 0; i < changes.size() && changes[i].iteration <= compared.last;) {
        const std::uint32_t iteration = changes[i].iteration;
        changed.clear();
        for (; i < changes.size() && changes[i].iteration == iteration; ++i) {
            const std::uint32_t group = group_of(changes[i].labelled);
            stacks[group].change += changes[i].bytes;
            changed.push_back(group);
        }
        for (const std::uint32_t number : changed) {
            StackGrowth& stack = stacks[number];
            stack.now += stack.change;
            if (iteration <= compared.middle) {
                stack.at_middle = stack.now;
            }
            if (iteration <= compared.first) {
                stack.at_first = stack.now;
            } else {
                stack.fell = stack.fell || stack.change < 0;
                stack.times_grown += stack.change > 0 ? 1 : 0;
            }
            stack.change = 0;
        }
    }
    return stacks;
}

// By index of Requests::labelled_stacks: the bytes that were live at the failure; 0 without one.
std::vector<std::uint64_t> live_at(EventIndex failed,
                                   const Timeline& timeline,
                                   const Requests& requests) {
    std::vector<std::uint64_t> live(requests.labelled_stacks.size());
    if (failed == kNoEvent) {
        return live;
    }
    for (std::size_t i = 0; i < requests.events.size() && requests.events[i] < failed; ++i) {
        const EventIndex born = requests.events[i];
        if (timeline.partner[born] > failed) {
            live[requests.labelled(i)] += allocated_bytes(timeline.events[born]);
        }
    }
    return live;
}

bool grows(const StackGrowth& stack, const Compared& compared) {
    return !stack.fell && stack.times_grown * 2 >= compared.last - compared.first;
}

// A growing stack, or a part of it with one label.
struct Growing {
    HoldingLine line;
    StackGrowth growth;
};

// A stack grows under one label or several, or under labels that change from step to step (a label
// with the number of the step in it). Each growing label is one entry if together they make up nine
// tenths of the growth of the stack. Otherwise the stack is one entry, without a label.
std::vector<Growing> find_growing(const RunHistory& history,
                                  const Compared& compared,
                                  const std::vector<std::uint64_t>& live,
                                  const RuleFinder& rules,
                                  Symbolizer* symbols) {
    const Requests& requests = history.requests;
    const std::vector<LabelledStack>& labelled = requests.labelled_stacks;
    const auto stack_of = [&labelled](std::uint32_t number) { return labelled[number].stack; };
    auto whole = follow(history.changes, compared, history.stacks.size(), stack_of);
    auto parts = follow(
        history.changes, compared, labelled.size(), [](std::uint32_t number) { return number; });
    std::vector<std::int64_t> explained(whole.size());  // growth under labels that grow
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
        parts[part].at_failure = live[part];
        whole[stack_of(part)].at_failure += live[part];
        if (grows(parts[part], compared)) {
            explained[stack_of(part)] += parts[part].now - parts[part].at_first;
        }
    }
    const auto as_one = [&](std::uint32_t stack) {
        return grows(whole[stack], compared) &&
               explained[stack] * 10 < (whole[stack].now - whole[stack].at_first) * 9;
    };
    std::vector<Growing> growing;
    std::map<std::uint32_t, std::size_t> entry_of;  // of stacks that are one entry
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
        const std::uint32_t stack = stack_of(part);
        if (!as_one(stack)) {
            if (grows(parts[part], compared)) {
                growing.push_back({line_of(part, history, rules, symbols), parts[part]});
            }
            continue;
        }
        if (parts[part].now == parts[part].at_first) {
            continue;
        }
        HoldingLine line = line_of(part, history, rules, symbols);
        const auto [entry, is_new] = entry_of.try_emplace(stack, growing.size());
        if (is_new) {
            line.held.label = symbols->describe_without_label(line.held.origin);
            growing.push_back({std::move(line), whole[stack]});
        } else if (growing[entry->second].line.user_category != line.user_category) {
            growing[entry->second].line.user_category.clear();
        }
    }
    return growing;
}

}  // namespace

Growth growth_of(const Timeline& timeline,
                 const RunHistory& history,
                 EventIndex first_failed,
                 const RuleFinder& rules,
                 Symbolizer* symbols) {
    Growth result;
    const std::size_t count = last_compared(history.iterations.begins, first_failed);
    const std::size_t first = first_compared(count);
    if (count < first + kLeastSteps) {
        return result;
    }
    result.first = first;
    result.last = count;
    result.repeats = ends_in_iterations(history);
    const std::size_t middle = first + (count - first) / 2;
    for (const BoundaryChange& change : history.changes) {
        if (change.iteration > first && change.iteration <= count) {
            result.bytes += change.bytes;
        }
    }
    using Key = std::tuple<std::string, Category, std::string>;
    std::map<Key, GrowingLine> places;
    std::map<Key, std::int64_t> late;  // growth after the middle
    std::map<Key, std::uint64_t> live_at_failure;
    const Compared compared = {.first = first, .middle = middle, .last = count};
    const std::vector<std::uint64_t> live = live_at(first_failed, timeline, history.requests);
    for (const Growing& found : find_growing(history, compared, live, rules, symbols)) {
        const StackGrowth& stack = found.growth;
        const Key key = {found.line.held.label, found.line.category, found.line.user_category};
        late[key] += stack.now - stack.at_middle;
        GrowingLine& place = places[key];
        const std::int64_t grown = place.place.held.bytes + stack.now - stack.at_first;
        place.place = found.line;
        place.place.held.bytes = grown;
        place.bytes_at_last += static_cast<std::uint64_t>(std::max<std::int64_t>(0, stack.now));
        place.times_grown = std::max(place.times_grown, stack.times_grown);
        live_at_failure[key] += stack.at_failure;
    }
    const bool failed_later =
        first_failed != kNoEvent && history.iterations.begins[count - 1] <= first_failed;
    const auto early_steps = static_cast<std::int64_t>(middle - first);
    const auto late_steps = static_cast<std::int64_t>(count - middle);
    for (auto& [key, place] : places) {
        const std::int64_t grown_late = late[key];
        place.slows =
            kSlower * grown_late * early_steps < (place.place.held.bytes - grown_late) * late_steps;
        place.freed_before_failure = failed_later && live_at_failure[key] < place.bytes_at_last / 2;
        result.places.push_back(std::move(place));
    }
    std::stable_sort(
        result.places.begin(), result.places.end(), [](const GrowingLine& a, const GrowingLine& b) {
            return a.place.held.bytes > b.place.held.bytes;
        });
    result.places.resize(std::min(result.places.size(), kMostPlaces));
    return result;
}

IterationPeaks iteration_peaks(const PeakHistory& history, const Iterations& iterations) {
    IterationPeaks peaks;
    if (iterations.begins.size() < 2) {
        return peaks;
    }
    peaks.known = true;
    const EventIndex steady = iterations.begins[1];
    peaks.warmup_allocated = history.allocated_before.before(steady);
    peaks.warmup_reserved = history.reserved_before.before(steady);
    peaks.steady_allocated = history.allocated_since.since(steady);
    peaks.steady_reserved = history.reserved_since.since(steady);
    return peaks;
}

}  // namespace fragtrace::analyzer
