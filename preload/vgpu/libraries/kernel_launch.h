// What a library asks of the virtual driver. The first call looks the driver up. Without one, calls
// do nothing.
#pragma once

#include "common/driver_interface.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

// Work of a library on a stream: an empty kernel, or a node in a graph that is being captured. The
// kernel makes contents unknown: those whose addresses are in the memory of `parameters`, which
// must be on the caller's stack, or all without parameters.
void launch_empty_kernel(void* stream, void** parameters = nullptr);

const DriverInterface* driver_interface();  // null without the virtual driver
int current_device();                       // -1: none

// DriverInterface::begin_work. The default stream is the one of this device.
uint64_t begin_work_on_device(int device, void* stream, uint64_t address, size_t bytes);

// Memory of the device, or null. The recorder sees these calls as it sees those of real libraries.
void* allocate_on_device(int device, size_t bytes);
void free_on_device(int device, void* memory);

}  // namespace fragtrace::vgpu
