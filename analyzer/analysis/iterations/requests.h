// The memory requests of one device, in order, with their stacks. Iterations, holders and growth
// are found from them.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Iterations are searched among the last requests of a run, at most this many.
inline constexpr std::size_t kMostRequests = std::size_t{1} << 20;

// Requests with the same stack and the same label.
struct LabelledStack {
    std::uint32_t stack = 0;  // as in Requests::stacks
    OriginId origin = 0;      // one origin that has this stack and this label
};

// Equal stacks of different threads have one number. If no stacks were recorded, the requests of
// one size have one number instead. Stacks are equal whatever the labels: a label may have the
// number of the step in it, and iterations are found because their stacks recur.
struct Requests {
    std::vector<EventIndex> events;     // ascending
    std::vector<std::uint32_t> stacks;  // per request, less than origins.size()
    std::vector<OriginId> origins;      // per stack, one origin that has it
    // Per request, an index of `labelled_stacks`. Empty if no request has a label; labelled(i) is
    // then the stack.
    std::vector<std::uint32_t> labelled_of = {};
    std::vector<LabelledStack> labelled_stacks = {};  // one per stack if there are no labels

    [[nodiscard]] std::size_t size() const { return events.size(); }

    // The stack and label of a request: an index of `labelled_stacks`.
    [[nodiscard]] std::uint32_t labelled(std::size_t request) const {
        return labelled_of.empty() ? stacks[request] : labelled_of[request];
    }
};

// Requests to the pool or, with `blocks` = false, the program's own device allocations. Allocations
// that a checkpoint lists are left out, since nobody requested them at that time.
Requests requests_of(const Timeline& timeline, DeviceId device, bool blocks);

// Size of the block that serves the request (docs/metrics.md, allocated); 0 if not known.
std::uint64_t allocated_bytes(const Event& request);

}  // namespace fragtrace::analyzer
