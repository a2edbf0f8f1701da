// One empty kernel on the virtual driver: what a library call that computes on the device amounts
// to. It makes device contents unknown and leaves a node in a graph being captured.
#pragma once

namespace fragtrace::vgpu {

void launch_empty_kernel(void* stream);

}  // namespace fragtrace::vgpu
