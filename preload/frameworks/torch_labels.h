// PyTorch's own labels of memory: torch.cuda.memory._set_memory_metadata for what a thread
// allocates next, and _annotate_tensor for one block.
#pragma once

#include "frameworks/torch_slots.h"

namespace fragtrace::preload {

// Replaces the functions in a copy of the native allocator's table.
void watch_labels(void** slots, const PoolSlots& layout);

}  // namespace fragtrace::preload
