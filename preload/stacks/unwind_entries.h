// Finds the entry for an address in the unwind tables of its module.
#pragma once

#include <features.h>
#include <stdint.h>

#if defined(__x86_64__) && __GLIBC_PREREQ(2, 35)
#    define FT_HAVE_UNWIND_RULES 1
#else
#    define FT_HAVE_UNWIND_RULES 0
#endif

namespace fragtrace::preload {

// The entry of a function, and the readable segment of its module that contains the entry.
struct UnwindEntry {
    const uint8_t* at;
    const uint8_t* begin;
    const uint8_t* end;
};

// Returns whether the C library can find a module's tables without a lock (since glibc 2.35). Must
// be called before find_unwind_entry().
bool can_find_unwind_entries();

// Finds the entry of the function that may contain `address`. Returns false if there is none. Takes
// no locks.
bool find_unwind_entry(uint64_t address, UnwindEntry* entry);

}  // namespace fragtrace::preload
