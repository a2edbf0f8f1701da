// Work of a library call on the virtual driver. An empty kernel makes the contents of the device
// unknown and becomes a node in a graph that is being captured. A copy keeps known contents.
#pragma once

#include <cstddef>

namespace fragtrace::vgpu {

void launch_empty_kernel(void* stream);
void copy_on_device(void* to, const void* from, size_t bytes, void* stream);

}  // namespace fragtrace::vgpu
