// Tables of virtual functions of a loaded object, also of one without symbols: its run-time type
// information names each class.
#pragma once

#include "system/loaded_objects.h"

#include <link.h>
#include <stddef.h>

namespace fragtrace::preload {

struct ClassTable {
    const void* type_info = nullptr;
    const void* base_type_info = nullptr;  // of a class with one base
    void** slots = nullptr;                // nullptr: not found, or found more than once
    size_t count = 0;
};

// Finds the table of a class with one base by its mangled name, such as "N3tsl12BFCAllocatorE".
// Reads the part of the object that the loader relocated, and the constants to which it points.
ClassTable find_class_table(const link_map* object, const char* mangled_name);

// Sets the protection of a table that the loader made read-only (`read_only`, from
// read_only_after_load). Returns false if that fails.
bool protect_table(void* const* slots, size_t count, const AddressRange& read_only, int protection);

}  // namespace fragtrace::preload
