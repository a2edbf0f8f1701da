// The loaded objects of the process: who contains an address, what an object defines.
//
// Reads the dynamic linker's public list and the objects' own symbol tables; allocates nothing and
// calls no dlsym, so it also serves to find dlsym. Safe from any thread; objects must not be
// unloaded while one of these functions looks at them (callers ask about code that is running).
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

struct AddressRange {
    uintptr_t begin = 0;
    uintptr_t end = 0;

    [[nodiscard]] bool contains(const void* address) const {
        const auto value = reinterpret_cast<uintptr_t>(address);
        return value >= begin && value < end;
    }
};

// The object that contains an address, nullptr if none does.
const link_map* object_at(const void* address);

// Everything that an object has mapped; empty if it is not loaded (any more).
AddressRange object_range(const link_map* map);

// True for addresses inside this library.
bool is_ours(const void* address);
const link_map* our_object();

// The address that `map` itself defines for `name`, its needed objects not considered; nullptr if
// it does not. An indirect function gives its resolver's address with *indirect set.
void* defined_symbol(const link_map* map, const char* name, bool* indirect);
// Size of that symbol as its object states it, 0 if it is not defined.
size_t defined_symbol_bytes(const link_map* map, const char* name);

// First object in load order from `from` on whose file name begins with `prefix` and that defines
// `name`; nullptr if none does.
void* find_definition(const link_map* from, const char* prefix, const char* name);

// First object whose file name begins with `prefix`.
const link_map* find_object(const char* prefix);

// The first object in load order.
const link_map* first_object();

// File name without folders ("" for the main program).
const char* base_name(const link_map* map);

// Start of the function that contains `address`, by the object's unwind table; nullptr if unknown.
const void* function_start(const void* address);

// True if `address` lies in memory that the object of `address` maps executable.
bool is_code(const void* address);

}  // namespace fragtrace::preload
