// Settings of the allocator: which allocator serves requests, its options, and their changes during
// a run.
#pragma once

#include "frameworks/torch_slots.h"

namespace fragtrace::preload {

// Records which allocator is used (fact "allocator_backend"). Returns true if it is the native one.
bool record_backend(void* allocator);

// Replaces the functions in a copy of the native allocator's table.
void watch_settings(void** slots, const PoolSlots& layout);

}  // namespace fragtrace::preload
