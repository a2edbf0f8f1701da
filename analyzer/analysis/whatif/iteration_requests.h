// The requests of one step (an iteration), keyed so that the same request can be found in another
// step.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// Identifies a request within its step: its stack, and the number of earlier requests from that
// stack.
using RequestKey = std::uint64_t;

RequestKey key_of(std::uint32_t stack, std::uint32_t occurrence);

// The requests are in their recorded order.
struct IterationRequests {
    std::size_t number = 0;  // the step's number, from 1
    EventIndex begin = 0;
    EventIndex end = 0;
    std::vector<EventIndex> events;  // of the requests
    std::vector<RequestKey> keys;
    std::unordered_map<RequestKey, std::size_t> places;  // index into `keys`

    [[nodiscard]] std::optional<std::size_t> find(RequestKey key) const;
    // Number of requests from this stack.
    [[nodiscard]] std::uint32_t count(std::uint32_t stack) const;
    // The place of the same request. If the step has fewer requests from that stack, the place of
    // its last one.
    [[nodiscard]] std::optional<std::size_t> place_of(RequestKey key) const;
};

// The requests of a whole step. Another step must follow it.
IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number);
// The requests of a step before event `until`.
IterationRequests iteration_requests(const Requests& requests,
                                     const Iterations& iterations,
                                     std::size_t number,
                                     EventIndex until);

// Similarity of the requests of `now` and those of `then` before `place`: the shared part, 0 to 1.
double likeness(const IterationRequests& now, const IterationRequests& then, std::size_t place);

// The stack of a failed request, as `requests` numbers it. Without stacks its size is used instead,
// as in `requests`.
std::optional<std::uint32_t> stack_of(const Timeline& timeline,
                                      const Requests& requests,
                                      EventIndex failed);

}  // namespace fragtrace::analyzer
