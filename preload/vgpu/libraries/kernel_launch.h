// What library calls amount to on the virtual driver: an empty kernel, which makes device contents
// unknown and leaves a node in a graph being captured, or a copy, which keeps what is known.
#pragma once

#include <cstddef>

namespace fragtrace::vgpu {

void launch_empty_kernel(void* stream);
void copy_on_device(void* to, const void* from, size_t bytes, void* stream);

}  // namespace fragtrace::vgpu
