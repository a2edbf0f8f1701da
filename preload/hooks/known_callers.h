// What was resolved before: real functions by hook and place of the call, and the objects that have
// called. Fixed tables; readers take no lock.
#pragma once

#include "hooks/hooks.h"
#include "system/loaded_objects.h"

#include <stdint.h>

namespace fragtrace::preload {

// The real function for calls from `caller`, a return address or the beginning of an object;
// nullptr if it is not known.
void* known_real(Hook hook, const void* caller);

// The object that holds the return address, if it has called before; else nothing.
AddressRange known_object(const void* caller);

// Keeps the real function for the return address, and for its whole object: the known one that
// begins at `object`, or a new one, `range` (both 0: for neither). Not where others write just now.
void keep_real(
    Hook hook, const void* caller, void* function, uintptr_t object, const AddressRange& range);

// A call from the return address reached `function`, and g_frequent_callers did not know.
void count_call(Hook hook, const void* caller, void* function);

// After an object was unloaded: another one may take its place in memory, and return addresses in
// it then mean other callers.
void forget_callers();

}  // namespace fragtrace::preload
