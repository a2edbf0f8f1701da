// Facts about the CUDA installation, its devices, and what else is on them.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Records versions and devices, once per process (again in a forked child). Call it after a CUDA
// call of the host has succeeded: it never initialises the driver.
void record_cuda_facts(const void* caller);

// What the device's first context took, and how that is known. Later ones do not count.
void record_context_fact(uint16_t device, uint64_t bytes, const char* how);

// Whether NVML knows the device as part of a divided one. Asks NVML.
void record_mig_fact(uint16_t device, const void* caller);

// The same where nobody saw the context begin: what is missing from the total right after the first
// allocation, `free_bytes` being what the driver calls free.
void record_context_bytes(uint16_t device, uint64_t free_bytes, const void* caller);

// Who else holds memory of the device, at most once a second: facts "device.N.processes.K".
// `sequence` is the event that says that memory was refused.
void record_other_processes(uint16_t device, uint64_t sequence, const void* caller);

}  // namespace fragtrace::preload
