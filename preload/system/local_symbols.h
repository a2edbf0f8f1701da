// Symbols that a loaded object does not export, from the symbol table of its file (.symtab), which
// the loader does not map. Large libraries have 100 MB of it: call this where file work is allowed.
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

struct LocalSymbol {
    const char* name;
    uintptr_t address;  // in this process; 0 = not found
    size_t size_bytes;
};

// Looks up `count` symbols (at most 32); all names contain `part`, which makes the search fast.
// Returns nullptr if the table was read, else the reason why not.
const char* find_local_symbols(const link_map* object,
                               const char* part,
                               LocalSymbol* symbols,
                               size_t count);

}  // namespace fragtrace::preload
