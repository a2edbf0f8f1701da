// Cache of earlier resolutions: real functions by hook and call site, and the objects that have
// called hooks. Fixed tables; readers take no lock.
#pragma once

#include "hooks/hook_call.h"
#include "system/loaded_objects.h"

#include <stdint.h>

namespace fragtrace::preload {

// Returns the real function for calls from `caller`, which is a return address or the start of an
// object; nullptr if unknown.
void* known_real(Hook hook, const void* caller);

// Returns the object that contains the return address, if it has called before; otherwise an empty
// range.
AddressRange known_object(const void* caller);

// Stores the real function for the return address and for its whole object. The object is the known
// one that starts at `object`, or a new one, `range`. If both are 0, nothing is stored for an
// object. Does nothing while another thread is writing.
void keep_real(
    Hook hook, const void* caller, void* function, uintptr_t object, const AddressRange& range);

// Called after a call from the return address resolved to `function` and g_frequent_callers did not
// know it.
void count_call(Hook hook, const void* caller, void* function);

// Called after an object was unloaded: another object may be loaded at its addresses, and return
// addresses then mean other callers.
void forget_callers();

}  // namespace fragtrace::preload
