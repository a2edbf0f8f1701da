// Private pools that are restored to a checkpoint (setCheckpointPoolState, used by CUDA graph
// trees).
//
// Inside that call, the allocator frees every block of the pool, allocates every block of the
// checkpoint and frees those that were free in it, with a report for each. These reports are held
// back. When the call returns, the same thread records the result: kPoolRewind, then the live
// blocks of the pool. Their requested sizes and streams are unknown here. If the pool had the same
// block before, that block's size and stream still apply.
#pragma once

#include "frameworks/torch_slots.h"
#include "frameworks/torch_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the function in a copy of the native allocator's table.
void watch_rewinds(void** slots, const PoolSlots& layout);

// Returns the pool that this thread is restoring, 0 = none.
uint32_t pool_set_back();

// For the report functions: returns true if this report is held back. `bytes` is 0 for a free.
bool hold_back(uint64_t address, uint64_t bytes);

inline bool setting_back(uint64_t address, uint64_t bytes) {
    return torch_thread().setting_back != nullptr && hold_back(address, bytes);
}

}  // namespace fragtrace::preload
