// The few CUDA types that the hooks see, as plain integers and pointers.
//
// CUDA's ABI outlives its headers: the hooks serve programs built against any CUDA from 11.2 on,
// so their signatures must not change with the headers found at build time. A test compares every
// signature in hooks.def with the declarations of the installed headers.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemHandle = unsigned long long;  // CUmemGenericAllocationHandle
using CUcontext = void*;
using cudaError_t = int;
using cudaEvent_t = void*;
using cudaStream_t = void*;

// Head of CUmemAllocationProp; what follows is passed through unread.
struct MemoryLocation {
    int type;  // kLocationDevice
    int id;
};

struct MemoryProperties {
    int type;
    int handle_types;
    MemoryLocation location;
};

inline constexpr int kLocationDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE

// What CUmemAllocationProp may take at most, for calls of ours that fill one in.
struct MemoryPropertiesBuffer {
    MemoryProperties head;
    unsigned char tail[128];
};

inline constexpr int kSuccess = 0;
inline constexpr CUresult kDriverNotInitialized = 3;      // CUDA_ERROR_NOT_INITIALIZED
inline constexpr cudaError_t kRuntimeNotInitialized = 3;  // cudaErrorInitializationError
inline constexpr int kPointerAttributeDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr uint64_t kPerThreadStreamFlag = 2;       // CU_GET_PROC_ADDRESS_PER_THREAD_...
inline constexpr int kFirstFiveArgumentVersion = 12000;   // of cuGetProcAddress

// The newest CUDA whose entry points were compared with hooks.def. A version asked for beyond it
// may have another signature, so its answer is replaced only if the address is a known one.
inline constexpr int kNewestKnownVersion = 13030;

}  // namespace fragtrace::preload
