#include "analyzer/analysis/whatif/iteration_requests.h"

#include <algorithm>

namespace fragtrace::analyzer {

RequestKey key_of(std::uint32_t stack, std::uint32_t occurrence) {
    return RequestKey{stack} << 32 | occurrence;
}

std::optional<std::size_t> IterationRequests::find(RequestKey key) const {
    const auto found = places.find(key);
    return found == places.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t IterationRequests::count(std::uint32_t stack) const {
    std::uint32_t occurrences = 0;
    while (places.contains(key_of(stack, occurrences))) {
        ++occurrences;
    }
    return occurrences;
}

std::optional<std::size_t> IterationRequests::place_of(RequestKey key) const {
    if (const auto same = find(key)) {
        return same;
    }
    const auto stack = static_cast<std::uint32_t>(key >> 32);
    const std::uint32_t occurrences = count(stack);
    return occurrences == 0 ? std::nullopt : find(key_of(stack, occurrences - 1));
}

IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number) {
    return iteration_requests(requests, iterations, number, iterations.begins[number]);
}

IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number,
                                     EventIndex until) {
    IterationRequests iteration;
    iteration.number = number;
    iteration.begin = iterations.begins[number - 1];
    iteration.end = until;
    std::unordered_map<std::uint32_t, std::uint32_t> counts;
    const auto first =
        std::lower_bound(requests.events.begin(), requests.events.end(), iteration.begin);
    for (auto at = static_cast<std::size_t>(first - requests.events.begin());
         at < requests.size() && requests.events[at] < until;
         ++at) {
        const std::uint32_t stack = requests.stacks[at];
        const RequestKey key = key_of(stack, counts[stack]++);
        iteration.places.emplace(key, iteration.keys.size());
        iteration.keys.push_back(key);
        iteration.events.push_back(requests.events[at]);
    }
    return iteration;
}

double likeness(const IterationRequests& now, const IterationRequests& then, std::size_t place) {
    std::size_t same = 0;
    for (const RequestKey key : now.keys) {
        const auto found = then.find(key);
        same += found && *found < place ? 1 : 0;
    }
    const std::size_t longest = std::max(now.keys.size(), place);
    return longest == 0 ? 1 : static_cast<double>(same) / static_cast<double>(longest);
}

std::optional<std::uint32_t> stack_of(const Timeline& timeline,
                                      const Requests& requests,
                                      EventIndex failed) {
    const Event event = timeline.events[failed];
    if (timeline.origins.size() <= 1) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            if (timeline.events[requests.events[i]].size_bytes == event.size_bytes) {
                return requests.stacks[i];
            }
        }
        return std::nullopt;
    }
    if (event.origin >= timeline.origins.size()) {
        return std::nullopt;
    }
    const Origin asked = timeline.origins[event.origin];
    for (std::uint32_t stack = 0; stack < requests.origins.size(); ++stack) {
        const OriginId id = requests.origins[stack];
        const Origin known = id < timeline.origins.size() ? timeline.origins[id] : Origin{};
        if (known.native_stack == asked.native_stack && known.python_stack == asked.python_stack) {
            return stack;
        }
    }
    return std::nullopt;
}

}  // namespace fragtrace::analyzer
