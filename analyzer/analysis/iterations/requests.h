// What one device was asked for, in order, and by which stack: what iterations, holders and growth
// are found from.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The stacks of different threads that are the same code are one stack. Where no stacks were
// recorded, requests of one size take the place of a stack.
struct Requests {
    std::vector<EventIndex> events;     // ascending
    std::vector<std::uint32_t> stacks;  // of each request, < origins.size()
    std::vector<OriginId> origins;      // one that has the stack, per stack

    [[nodiscard]] std::size_t size() const { return events.size(); }
};

// Blocks handed out by the pool, or with `blocks` = false the program's own device allocations.
// What a checkpoint tells is asked for by nobody and left out.
Requests requests_of(const Timeline& timeline, DeviceId device, bool blocks);

// Block bytes of a request (docs/metrics.md, allocated).
std::uint64_t allocated_bytes(const Event& request);

}  // namespace fragtrace::analyzer
