// Facts about the CUDA installation, its devices, and other users of the devices.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// Records versions and devices, once per process (again in a forked child). Call it only after a
// CUDA call of the host has succeeded: it never initialises the driver.
void record_cuda_facts(const void* caller);

// Records one device at its first context: a process may never allocate. Calls only the driver.
void record_context_device(uint16_t device, const void* caller);

// Records the memory of the device's first context, and how it was measured. Later contexts of the
// device are not recorded.
void record_context_fact(uint16_t device, uint64_t bytes, const char* how);

// Records whether NVML knows the device as a part (MIG instance) of a physical GPU. Calls NVML.
void record_mig_fact(uint16_t device, const void* caller);

// Like record_context_fact, for a context whose creation was not seen. Its size is the device's
// total minus the free memory right after the first allocation. `free_bytes` is the free memory
// that the driver reports.
void record_context_bytes(uint16_t device, uint64_t free_bytes, const void* caller);

// Records other processes' device memory, at most once a second, as facts "device.N.processes.K".
// `sequence` is the event of the refused allocation.
void record_other_processes(uint16_t device, uint64_t sequence, const void* caller);

}  // namespace fragtrace::preload
