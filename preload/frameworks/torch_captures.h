// Stream captures, as the caching allocator sees them.
//
// During a capture, the allocator does not poll or record CUDA events and does not release cached
// segments. Since 2.13 it is notified of captures (markCaptureBegin), and a call is part of a
// capture if the current stream of its thread is being captured. Earlier releases treat every call
// as part of a capture while any request of the device is routed to a private pool, by a capture or
// by a MemPool.
#pragma once

#include "frameworks/torch_slots.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the functions in a copy of the native allocator's table.
void watch_captures(void** slots, const PoolSlots& layout);

// Counts that requests of a device are now routed to a private pool (1), or no longer (-1).
void count_routing(int device, int change);

// Returns whether the allocator may treat a call for this device as part of a capture;
// kDeviceUnknown: any device.
bool may_capture(uint16_t device);

// Returns whether the allocator treats the calling thread's call as part of a capture.
bool is_in_capture(uint16_t device);

// Returns whether the stream is being captured: memory allocated on it then belongs to a graph.
bool is_captured(uint64_t stream);

}  // namespace fragtrace::preload
