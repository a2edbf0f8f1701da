// What NVML knows and CUDA does not: what other processes hold of a device.
//
// The library is opened privately at the first question, on the calling thread, and stays open. Its
// calls are not hooked and take milliseconds: they are made when a context is created and when
// memory was refused, never otherwise. Without NVML every answer is "no".
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
    uint32_t pid;         // as the host numbers it, which a container may not
    uint64_t used_bytes;  // kUnknown64 where NVML may not tell
};

bool nvml_memory(uint16_t device, const void* caller, NvmlMemory* memory);

// Number of processes with compute or graphics contexts that were written to `processes`, -1 if it
// cannot be told. `total` counts all of them.
int nvml_processes(
    uint16_t device, const void* caller, NvmlProcess* processes, int capacity, int* total);

// 1 if the device is an instance of a divided GPU, 0 if it is not, -1 if unknown.
int nvml_mig_mode(uint16_t device, const void* caller);

// "GPU-..." or "MIG-..." for 16 bytes of a UUID; `text` holds 41 bytes.
void format_uuid(const char* prefix, const unsigned char* uuid, char* text);

}  // namespace fragtrace::preload
