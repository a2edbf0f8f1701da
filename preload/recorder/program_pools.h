// Pools of the program's own: <fragtrace/mark.h> reports their blocks.
//
// A pool has a number, as other pools have (numbered_names.h), and is known by its fact "pool.N".
// Nothing here starts a session: the memory in which the blocks lie comes from the driver, and its
// allocation starts one. All functions can be called from any thread at any time, also in a forked
// child, where the pools of its parent keep their numbers.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Returns the number of a new pool; 0 if nothing is recorded. A pool with the name and kind of a
// destroyed one gets its number.
uint32_t create_program_pool(const char* name, const char* kind);

// The pool's live blocks end.
void destroy_program_pool(uint32_t pool);

// The most bytes that the pool may hold; 0 = no limit.
void set_program_pool_limit(uint32_t pool, uint64_t limit_bytes);

// Settings of the simulated pool of the same kind, "key:value,...": how the pool is set up.
void set_program_pool_settings(uint32_t pool, const char* settings);

// `requested_bytes` = ~0: unknown. `flags`: EventFlag. Does nothing for a block without an address
// or a size.
void record_program_block(uint32_t pool,
                          uint64_t address,
                          uint64_t requested_bytes,
                          uint64_t size_bytes,
                          uint64_t stream,
                          uint8_t flags = 0);

void record_program_free(uint32_t pool, uint64_t address);

void record_program_failure(uint32_t pool,
                            uint64_t requested_bytes,
                            uint64_t stream,
                            uint8_t flags = 0);

// The pool's blocks of this stream belong to no stream from now on.
void record_program_stream_end(uint32_t pool, uint64_t stream);

// For a forked child: the thread that owned the lock does not exist there.
void reset_program_pools_lock();

}  // namespace fragtrace::preload
