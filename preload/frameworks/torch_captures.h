// Stream captures, as the caching allocator sees them.
//
// Within a capture the allocator polls no event, records none and releases no cache. Since 2.13 it
// is told of captures (markCaptureBegin), and a call is part of one if the current stream of its
// thread is being captured. Earlier releases take every call for one while any request of the
// device is routed to a private pool, by a capture or by a MemPool.
#pragma once

#include "frameworks/torch_slots.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the functions in a copy of the native pool's table.
void watch_captures(void** slots, const PoolSlots& layout);

// Requests of a device are routed to a private pool from now on (1), or no longer (-1).
void count_routing(int device, int change);

// A call that concerns the device may be taken for a part of a capture; kDeviceUnknown: any device.
bool may_capture(uint16_t device);

// The calling thread's call is taken for a part of a capture.
bool is_in_capture(uint16_t device);

// The stream is being captured: what is allocated on it belongs to a graph.
bool is_captured(uint64_t stream);

}  // namespace fragtrace::preload
