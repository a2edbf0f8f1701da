// Private pools: which blocks belong to them and who uses them.
#pragma once

#include "frameworks/torch_slots.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the functions in a copy of the native pool's table.
void watch_pools(void** slots, const PoolSlots& layout);

// For the reports, under the allocator's mutex; numbers as in EventRecord::pool. Of the block just
// handed out, on a stream that may be unknown; and of one that is taken back.
uint32_t pool_of_new_block(uint64_t address, uint16_t device, uint64_t stream);
uint32_t pool_of_freed_block(uint64_t address);
// Of the request that is being served.
uint32_t pool_of_request(uint16_t device, uint64_t stream);

// True if the address is that of a live block of a private pool.
bool block_is_private(uint64_t address);
bool pool_has_users(uint32_t pool, uint16_t device);

// A graph was captured into the pool: it uses the pool's memory at each launch.
void torch_note_graph_pool(uint32_t pool);

// Says once that pools are not recorded completely.
void torch_pools_incomplete(const char* why);

}  // namespace fragtrace::preload
