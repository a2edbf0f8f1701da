// Which events allocate memory in the device layer (docs/metrics.md, State). Recorded state,
// pairing, replay and holders share this rule.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>

namespace fragtrace::analyzer {

// After such an event the process has device memory from the driver, until the event's partner. A
// kGraphMemory event states the total that all launched graphs have reserved, until the next
// kGraphMemory.
constexpr bool is_device_allocation(EventKind kind) {
    return has_trait(kind, kTakesMemory);
}

// The size of a device allocation in bytes; kUnknown64 = not known.
constexpr std::uint64_t device_bytes(const Event& allocation) {
    return allocation.kind == EventKind::kGraphMemory ? allocation.extra : allocation.size_bytes;
}

// True for requests for device memory in either layer, whether served or refused.
constexpr bool asks_for_memory(EventKind kind) {
    return has_trait(kind, kRequest) || has_trait(kind, kTakesMemory);
}

// Memory without an address of its own (physical memory, arrays, graphs) gets a stand-in address
// from here upwards. No driver returns such an address.
inline constexpr DeviceAddress kFirstStandInAddress = DeviceAddress{1} << 62;

}  // namespace fragtrace::analyzer
