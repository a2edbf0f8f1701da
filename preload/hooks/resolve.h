// Finding the real functions behind the hooks.
//
// For each caller, what it would have reached without us: a preloaded library that follows ours
// and defines the name; else what the caller's own object finds; else what follows us in the
// program's scope; else what was seen through dlsym or cuGetProcAddress. An answer inside this
// library is never taken. Answers are cached per return address in a fixed table without locks,
// and the library that holds an answer is kept loaded.
#pragma once

#include "hooks/hooks.h"
#include "system/loaded_objects.h"

namespace fragtrace::preload {

struct HookInfo {
    const char* name;
    const char* base;    // as cuGetProcAddress names it, "" for others
    int since;           // CUDA version, 1000 * major + 10 * minor
    uint8_t stream;      // StreamKind
    uint8_t library;     // Library
    const char* object;  // first letters of the file that defines it
    void* wrapper;       // nullptr for functions that are only called
};

enum Library : uint8_t { kDriverLibrary, kRuntimeLibrary, kFrameworkLibrary };

enum StreamKind : uint8_t { kAnyStream, kLegacyStream, kPerThreadStream };

HookInfo hook_info(Hook hook);

// The interposed CUDA function of exactly this name; kNone for every other name.
Hook find_hook(const char* name);

// The real function as the caller's scope has it, without falling back to what was seen elsewhere;
// on failure nullptr, and dlerror() tells so. Not cached.
void* resolve_in_scope(Hook hook, const link_map* caller);

// Keeps an address that dlsym or cuGetProcAddress gave for `hook`, as the last resort of resolve().
// False if another one is kept already and calls could end up in the wrong library.
bool remember_real(Hook hook, void* function);

// What a function that we interpose, other than CUDA's, passes calls on to.
void* next_definition(const char* name);
// The same for constructors: by the symbol tables alone, in a tenth of the time. Later on, objects
// that only some see stand in the list, and others are taken out of it.
void* next_definition_at_start(const char* name);

// The loader's own functions, past every interposer.
void* real_dlsym(void* handle, const char* name);
void* real_dlvsym(void* handle, const char* name, const char* version);

// The wrapper to hand out in place of `function`, which a driver gave for a request of
// cuGetProcAddress; `function` itself when it is none of ours to wrap.
void* replace_entry_point(void* function, const char* symbol, int version, uint64_t flags);

}  // namespace fragtrace::preload
