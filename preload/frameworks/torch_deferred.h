// Frees that PyTorch puts off while a graph is captured.
#pragma once

#include "frameworks/torch_slots.h"
#include "frameworks/torch_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces recordStream in a copy of the native pool's table: which streams use which block.
void watch_stream_uses(void** slots, const PoolSlots& layout);

// For the reports, under the allocator's mutex: of a block that is handed out, on a stream that may
// be unknown; and of one that is taken back. The latter gives what the free waits for once captures
// are over, where it waits though no event was recorded: at most kMaxPendingEvents.
void note_block_stream(uint64_t block, uint64_t stream);
uint32_t defer_free(uint64_t block, uint16_t device, bool has_events, PendingOn* pending);

// The pool has recorded an event on a stream, and not for a free: the number, as EventRecord::extra
// has it, of the one that a deferred free waited for. 0: none does.
uint64_t take_deferred_event(uint64_t stream);

// The pool of a device, or of all of them, is serving a request or being emptied, and has recorded
// what events it will: frees that still wait for one are complete.
void complete_deferred_frees(uint16_t device);

}  // namespace fragtrace::preload
