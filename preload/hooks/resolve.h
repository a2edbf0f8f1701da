// Finds the real functions that the hooks call.
//
// The result is the function that the caller would have called without us. In this order: that of a
// preloaded library after ours; that which the caller's own object finds; the next one after ours
// in the program's scope; one seen through dlsym or cuGetProcAddress. A result inside this library
// is never used. Results are cached per return address in a fixed table without locks. The library
// of a result is kept loaded.
#pragma once

#include "hooks/hook_call.h"
#include "system/loaded_objects.h"

namespace fragtrace::preload {

struct HookInfo {
    const char* name;
    const char* base;    // name for cuGetProcAddress, "" if none
    int since;           // CUDA version, 1000 * major + 10 * minor
    uint8_t stream;      // StreamKind
    uint8_t library;     // Library
    const char* object;  // beginning of the name of the file that defines it
    void* wrapper;       // nullptr for functions that are not interposed
};

enum Library : uint8_t { kDriverLibrary, kRuntimeLibrary, kFrameworkLibrary, kNcclLibrary };

enum StreamKind : uint8_t { kAnyStream, kLegacyStream, kPerThreadStream };

HookInfo hook_info(Hook hook);

// Returns the interposed function of CUDA or NCCL with exactly this name; kNone for any other name.
Hook find_hook(const char* name);

// Returns the real function in the caller's scope, without functions that were seen elsewhere. On
// failure returns nullptr, and dlerror() has the reason. Not cached.
void* resolve_in_scope(Hook hook, const link_map* caller);

// Stores an address that dlsym or cuGetProcAddress returned for `hook`, as the last resort of
// resolve(). Returns false if another address is already stored and calls could reach the wrong
// library.
bool remember_real(Hook hook, void* function);

// Returns the next definition of a function that we interpose, other than CUDA's; our wrapper calls
// it.
void* next_definition(const char* name);

// The loader's own functions, bypassing every interposer.
void* real_dlsym(void* handle, const char* name);
void* real_dlvsym(void* handle, const char* name, const char* version);

// Returns the wrapper for `function`, which a driver returned for a request to cuGetProcAddress.
// Returns `function` itself if we have no wrapper for it.
void* replace_entry_point(void* function, const char* symbol, int version, uint64_t flags);

}  // namespace fragtrace::preload
