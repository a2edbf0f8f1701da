// Frees that PyTorch defers while a graph is being captured.
#pragma once

#include "frameworks/torch_slots.h"
#include "frameworks/torch_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces recordStream in a copy of the native allocator's table, to know which streams use which
// block.
void watch_stream_uses(void** slots, const PoolSlots& layout);

// For the report functions, under the allocator's mutex. note_block_stream: a block was allocated
// on a stream, which may be unknown. defer_free: a block was freed. If the free must wait although
// no CUDA event was recorded, defer_free writes what it will wait for after the capture, and
// returns the number, at most kMaxPendingEvents.
void note_block_stream(uint64_t block, uint64_t stream);
uint32_t defer_free(uint64_t block, uint16_t device, bool has_events, PendingOn* pending);

// Called when the allocator has recorded a CUDA event on a stream, but not for the current free.
// Returns the number (as in EventRecord::extra) of the event that a deferred free was waiting for;
// 0 if none was.
uint64_t take_deferred_event(uint64_t stream);

// Called when the allocator of a device, or of all devices, serves a request or is emptied. It has
// then recorded all events that it needs, so frees that still wait to have one recorded are
// complete.
void complete_deferred_frees(uint16_t device);

}  // namespace fragtrace::preload
