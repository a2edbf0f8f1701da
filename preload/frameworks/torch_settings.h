// What the pool was told to do: which allocator serves, its settings, and what changes them in the
// middle of a run.
#pragma once

#include "frameworks/torch_slots.h"

namespace fragtrace::preload {

// Records which allocator serves (fact "allocator_backend"); true if it is the native pool.
bool record_backend(void* allocator);

// Replaces the functions in a copy of the native pool's table.
void watch_settings(void** slots, const PoolSlots& layout);

}  // namespace fragtrace::preload
