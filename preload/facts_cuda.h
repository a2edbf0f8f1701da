// Facts about the CUDA installation and its devices.
#pragma once

namespace fragtrace::preload {

// Records versions and devices, once per process (again in a forked child). Call it after a CUDA
// call of the host has succeeded: it never initialises the driver.
void record_cuda_facts(const void* caller);

}  // namespace fragtrace::preload
