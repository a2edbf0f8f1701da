// The native modules of the process, for symbol look-ups later: the mappings, and the build ids,
// which show whether a file that is found later is still the same.
#pragma once

#include <fragtrace/codec.h>

#include <stdint.h>

namespace fragtrace::preload {

// Counters of the loader that every dlopen and dlclose change.
struct ModuleVersion {
    uint64_t added;
    uint64_t removed;
};

ModuleVersion module_version();

// Appends all executable mappings as a kModules payload. Returns their number.
uint32_t encode_modules(ByteWriter* out);

// The executable code of the object that contains the recorder. Frames in this range are the
// recorder's own. The range is empty if that object is the program itself (with the recorder linked
// in, as in a test).
struct TextRange {
    uint64_t begin;
    uint64_t end;
};

TextRange own_text();

}  // namespace fragtrace::preload
