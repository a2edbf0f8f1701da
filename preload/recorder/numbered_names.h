// Names and pools as small numbers, which is how events carry them. What a number stands for is a
// fact of the trace: "text.N" and "pool.N".
//
// Numbers begin at 1, are the same for the life of the process and its forked children, and are
// found again without a lock. Thread-safe; a new one takes a lock with a bounded wait.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// The number that stands for all names, or pools, that came when the table was full.
inline constexpr uint32_t kNumberOfTheRest = 1;
inline constexpr uint32_t kMostNumbers = 4096;

// Of a name: a range, a mark, a function, settings. 0 for nullptr.
uint32_t text_number(const char* text);

enum class PoolOwner : uint8_t {
    kPytorch,  // a private pool of the caching allocator: both halves of its MempoolId_t
    kCuda,     // a memory pool of the driver: its handle, 0
};

// Of a pool other than the default one, which is 0.
uint32_t pool_number(PoolOwner owner, uint64_t first, uint64_t second);

// For a forked child: the holder of the lock is gone.
void reset_numbers_lock();

}  // namespace fragtrace::preload
