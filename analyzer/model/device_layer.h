// Which events make the device layer's memory of a process (docs/metrics.md, State): one rule for
// recorded state, pairing, replay and holders.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>

namespace fragtrace::analyzer {

// From such an event on the driver holds memory of the device for the process, up to the event's
// partner. A kGraphMemory says what all launched graphs have reserved, up to the next one.
constexpr bool is_device_allocation(EventKind kind) {
    return has_trait(kind, kTakesMemory);
}

// Of a device allocation; kUnknown64 = not known.
constexpr std::uint64_t device_bytes(const Event& allocation) {
    return allocation.kind == EventKind::kGraphMemory ? allocation.extra : allocation.size_bytes;
}

// Somebody asks for memory of a device, in either layer, or was refused.
constexpr bool asks_for_memory(EventKind kind) {
    return has_trait(kind, kRequest) || has_trait(kind, kTakesMemory);
}

// Memory that has no address of its own (physical memory, arrays, graphs) stands at addresses from
// here on, which no driver gives.
inline constexpr DeviceAddress kFirstStandInAddress = DeviceAddress{1} << 62;

}  // namespace fragtrace::analyzer
