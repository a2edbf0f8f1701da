// Small numbers for names and pools, because events have no room for texts. A fact of the trace
// gives the meaning of a number: "text.N" or "pool.N".
//
// Numbers start at 1 and are the same for the life of the process and its forked children. Finding
// a known number needs no lock. Thread-safe; a new number takes a lock with a bounded wait.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Shared by all names, or pools, that are new when the table is full.
inline constexpr uint32_t kNumberOfTheRest = 1;
inline constexpr uint32_t kMostNumbers = 4096;

// Returns the number of a name: a range, a mark, a function or settings. 0 for nullptr.
uint32_t text_number(const char* text);

enum class PoolOwner : uint8_t {
    kPytorch,  // a private pool of the caching allocator: both parts of its MempoolId_t
    kCuda,     // a memory pool of the driver: its handle and 0
};

// Returns the number of a pool. The default pool has no such number: its number is 0.
uint32_t pool_number(PoolOwner owner, uint64_t first, uint64_t second);

// Returns a number for a new pool of the program. `instance` differs for each of them; `identity`
// is "KIND NAME", or nullptr for a pool that gets the number of the rest.
uint32_t program_pool_number(uint64_t instance, const char* identity);

// Gives a private pool of PyTorch a name of the program's: the fact "pool.N.name". The last one
// counts, but a pool keeps its 7th name, since facts are never removed.
void name_pytorch_pool(uint64_t first, uint64_t second, const char* name);

// For a forked child: the thread that owned the lock does not exist there.
void reset_numbers_lock();

}  // namespace fragtrace::preload
