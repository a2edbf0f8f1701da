// The requests of one step (an iteration), such that the same request is found in another step.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// A request within its step: its stack, and how many requests of that stack came before it.
using RequestKey = std::uint64_t;

RequestKey key_of(std::uint32_t stack, std::uint32_t occurrence);

// In their order.
struct IterationRequests {
    std::size_t number = 0;  // of the step, from 1
    EventIndex begin = 0;
    EventIndex end = 0;
    std::vector<EventIndex> events;  // of the requests
    std::vector<RequestKey> keys;
    std::unordered_map<RequestKey, std::size_t> places;  // in `keys`

    [[nodiscard]] std::optional<std::size_t> find(RequestKey key) const;
    // Requests of a stack.
    [[nodiscard]] std::uint32_t count(std::uint32_t stack) const;
    // The same request; of a step that has fewer of its stack the last one of these.
    [[nodiscard]] std::optional<std::size_t> place_of(RequestKey key) const;
};

// Of a step that another follows.
IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number);
// Up to an event.
IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number,
                                     EventIndex until);

// How much of the requests of `now`, and of those of `then` up to a place, is the same; 0 to 1.
double likeness(const IterationRequests& now, const IterationRequests& then, std::size_t place);

// The stack, as `requests` number them, of a request that failed. Without stacks its size stands
// for it, as it does in `requests`.
std::optional<std::uint32_t> stack_of(const Timeline& timeline,
                                      const Requests& requests,
                                      EventIndex failed);

}  // namespace fragtrace::analyzer
