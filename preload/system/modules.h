// The native modules of the process, for symbols looked up later: what is mapped where, and the
// build id that tells whether a file found then is still the same.
#pragma once

#include <fragtrace/codec.h>

#include <stdint.h>

namespace fragtrace::preload {

// Counters of the loader that change with every dlopen and dlclose.
struct ModuleVersion {
    uint64_t added;
    uint64_t removed;
};

ModuleVersion module_version();

// Appends all executable mappings as a kModules payload; gives their number.
uint32_t encode_modules(ByteWriter* out);

// The text of the object that holds this code: where the recorder's own frames lie. An empty range
// when that is the program itself (the recorder linked in, as in a test).
struct TextRange {
    uint64_t begin;
    uint64_t end;
};

TextRange own_text();

}  // namespace fragtrace::preload
