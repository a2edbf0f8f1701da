#include "analyzer/analysis/holders/growth.h"

#include <algorithm>
#include <map>
#include <string>
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
};

}  // namespace

Growth growth_of(const RunHistory& history, EventIndex first_failed, Symbolizer* symbols) {
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
    std::vector<StackGrowth> stacks(history.stacks.size());
    std::vector<std::uint32_t> changed;
    const std::vector<BoundaryChange>& changes = history.changes;
    for (std::size_t i = 0; i < changes.size() && changes[i].iteration <= count;) {
        const std::uint32_t iteration = changes[i].iteration;
        changed.clear();
        for (; i < changes.size() && changes[i].iteration == iteration; ++i) {
            stacks[changes[i].stack].change += changes[i].bytes;
            changed.push_back(changes[i].stack);
        }
        for (const std::uint32_t number : changed) {
            StackGrowth& stack = stacks[number];
            stack.now += stack.change;
            if (iteration <= middle) {
                stack.at_middle = stack.now;
            }
            if (iteration <= first) {
                stack.at_first = stack.now;
            } else {
                stack.fell = stack.fell || stack.change < 0;
                stack.times_grown += stack.change > 0 ? 1 : 0;
            }
            stack.change = 0;
        }
    }
    std::map<std::pair<std::string, Category>, GrowingLine> places;
    std::map<std::pair<std::string, Category>, std::int64_t> late;  // growth after the middle
    for (std::size_t number = 0; number < stacks.size(); ++number) {
        const StackGrowth& stack = stacks[number];
        result.bytes += stack.now - stack.at_first;
        if (stack.fell || stack.times_grown * 2 < count - first) {
            continue;
        }
        const OriginId origin = history.requests.origins[number];
        const Category category = category_of(history.stacks[number]);
        const std::string label = symbols->describe(origin);
        late[{label, category}] += stack.now - stack.at_middle;
        GrowingLine& place = places[{label, category}];
        place.place.held.label = label;
        place.place.held.origin = origin;
        place.place.held.bytes += stack.now - stack.at_first;
        place.place.category = category;
        place.bytes_at_last += static_cast<std::uint64_t>(std::max<std::int64_t>(0, stack.now));
        place.times_grown = std::max(place.times_grown, stack.times_grown);
    }
    const auto early_steps = static_cast<std::int64_t>(middle - first);
    const auto late_steps = static_cast<std::int64_t>(count - middle);
    for (auto& [key, place] : places) {
        const std::int64_t grown_late = late[key];
        place.slows =
            kSlower * grown_late * early_steps < (place.place.held.bytes - grown_late) * late_steps;
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
