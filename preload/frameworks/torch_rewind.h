// Private pools that are set back to a checkpoint (setCheckpointPoolState, used by CUDA graph
// trees).
//
// Inside that call the allocator takes back every block of the pool, hands out every block of the
// checkpoint and takes back those that were free in it, with a report each. They are held back,
// and what is left of them is announced when the call returns: kPoolRewind, and then the blocks
// that the pool holds, by the same thread. Their requested sizes and streams are not known here;
// where the pool held such a block before, it still is that block.
#pragma once

#include "frameworks/torch_slots.h"
#include "frameworks/torch_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the function in a copy of the native pool's table.
void watch_rewinds(void** slots, const PoolSlots& layout);

// The pool that this thread is setting back, 0 = none.
uint32_t pool_set_back();

// For the reports: true if this one is held back. `bytes` is 0 where a block is taken back.
bool hold_back(uint64_t address, uint64_t bytes);

inline bool setting_back(uint64_t address, uint64_t bytes) {
    return torch_thread().setting_back != nullptr && hold_back(address, bytes);
}

}  // namespace fragtrace::preload
