// The memory requests of one device, in order, with their stacks. Iterations, holders and growth
// are found from them.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Equal stacks of different threads have one number. If no stacks were recorded, the requests of
// one size have one number instead.
struct Requests {
    std::vector<EventIndex> events;     // ascending
    std::vector<std::uint32_t> stacks;  // per request, less than origins.size()
    std::vector<OriginId> origins;      // per stack, one origin that has it

    [[nodiscard]] std::size_t size() const { return events.size(); }
};

// Requests to the pool or, with `blocks` = false, the program's own device allocations. Allocations
// that a checkpoint lists are left out, since nobody requested them at that time.
Requests requests_of(const Timeline& timeline, DeviceId device, bool blocks);

// Size of the block that serves the request (docs/metrics.md, allocated); 0 if not known.
std::uint64_t allocated_bytes(const Event& request);

}  // namespace fragtrace::analyzer
