// Private pools: which blocks belong to them, and whether they have users.
#pragma once

#include "frameworks/torch_slots.h"

#include <stdint.h>

namespace fragtrace::preload {

// Replaces the functions in a copy of the native allocator's table.
void watch_pools(void** slots, const PoolSlots& layout);

// For the report functions, under the allocator's mutex. They return the pool, as in
// EventRecord::pool, of a block that was just allocated, on a stream that may be unknown, and of a
// block that is being freed.
uint32_t pool_of_new_block(uint64_t address, uint16_t device, uint64_t stream);
uint32_t pool_of_freed_block(uint64_t address);
// Returns the pool of the request that is being served.
uint32_t pool_of_request(uint16_t device, uint64_t stream);

// Returns true if a live block of a private pool has this address.
bool block_is_private(uint64_t address);
bool pool_has_users(uint32_t pool, uint16_t device);

// Notes that a graph was captured into the pool: each launch of the graph uses the pool's memory.
void torch_note_graph_pool(uint32_t pool);

// Records once that private pools are not recorded completely.
void torch_pools_incomplete(const char* why);

}  // namespace fragtrace::preload
