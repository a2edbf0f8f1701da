// Data that NVML has and CUDA does not: the device memory of other processes.
//
// The first call opens the library privately, on the calling thread; it stays open. Its functions
// are not hooked and take milliseconds. They are called only when a context is created and when
// memory was refused. Without NVML, every function reports failure.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

struct NvmlMemory {
    uint64_t total_bytes;
    uint64_t free_bytes;
    uint64_t used_bytes;
};

struct NvmlProcess {
    uint32_t pid;         // as numbered by the host; a container may use other numbers
    uint64_t used_bytes;  // kUnknown64 if NVML does not report it
};

bool nvml_memory(uint16_t device, const void* caller, NvmlMemory* memory);

// Writes processes with compute or graphics contexts to `processes`. Returns their number, -1 if
// unknown. `total` counts all such processes.
int nvml_processes(
    uint16_t device, const void* caller, NvmlProcess* processes, int capacity, int* total);

// Returns 1 if the device is an instance of a partitioned (MIG) GPU, 0 if not, -1 if unknown.
int nvml_mig_mode(uint16_t device, const void* caller);

// Writes "GPU-..." or "MIG-..." for a UUID of 16 bytes. `text` must have room for 41 bytes.
void format_uuid(const char* prefix, const unsigned char* uuid, char* text);

}  // namespace fragtrace::preload
