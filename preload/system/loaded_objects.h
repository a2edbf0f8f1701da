// The loaded objects of the process: which object contains an address, what an object defines.
//
// Reads the dynamic linker's public list and the objects' own symbol tables. It allocates nothing
// and does not call dlsym, so it can also find dlsym. Safe in any thread. An object must not be
// unloaded while one of these functions reads it; callers only ask about running code.
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

// Returns the object that contains an address, nullptr if none does.
const link_map* object_at(const void* address);

// Returns the range of all mappings of an object; empty if it is not loaded (any more).
AddressRange object_range(const link_map* map);

// Returns the part of an object that the loader made read-only after it had relocated it; empty if
// there is none.
AddressRange read_only_after_load(const link_map* map);

// True for addresses inside this library.
bool is_ours(const void* address);
const link_map* our_object();

// Returns the address that `map` itself defines for `name`, without the objects that it needs;
// nullptr if none. For an indirect function, returns its resolver's address and sets *indirect.
void* defined_symbol(const link_map* map, const char* name, bool* indirect);
// Returns the size of that symbol as its object declares it, 0 if it is not defined.
size_t defined_symbol_bytes(const link_map* map, const char* name);

// Returns the definition of `name` in the first object, in load order from `from` on, whose file
// name begins with `prefix` and that defines `name`; nullptr if there is none.
void* find_definition(const link_map* from, const char* prefix, const char* name);

// Returns the next definition of `name` after this library, from the symbol tables alone, which
// takes a tenth of the time of dlsym(). For functions of objects that the process was started with,
// such as the C library: the search must end there, because the objects behind them come and go.
void* next_definition_at_start(const char* name);

// Returns the first object whose file name begins with `prefix`.
const link_map* find_object(const char* prefix);

// Returns the first object in load order.
const link_map* first_object();

// Returns the file name without folders ("" for the main program).
const char* base_name(const link_map* map);

// Returns the start of the function that contains `address`, from the object's unwind table;
// nullptr if unknown.
const void* function_start(const void* address);

// Returns true if `address` is in memory that its object maps as executable.
bool is_code(const void* address);

}  // namespace fragtrace::preload
