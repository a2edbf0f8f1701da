// Where a module's unwind tables speak of an address.
#pragma once

#include <features.h>
#include <stdint.h>

#if defined(__x86_64__) && __GLIBC_PREREQ(2, 35)
#    define FT_HAVE_UNWIND_RULES 1
#else
#    define FT_HAVE_UNWIND_RULES 0
#endif

namespace fragtrace::preload {

// The entry of a function, and the readable segment of its module that holds it.
struct UnwindEntry {
    const uint8_t* at;
    const uint8_t* begin;
    const uint8_t* end;
};

// Whether the C library can find a module's tables without a lock (glibc 2.35). Before the others.
bool can_find_unwind_entries();

// The entry of the function that may contain `address`; false if there is none. No locks.
bool find_unwind_entry(uint64_t address, UnwindEntry* entry);

}  // namespace fragtrace::preload
