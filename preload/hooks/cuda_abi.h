// The few CUDA types that the hooks see, as plain integers and pointers.
//
// CUDA's ABI is more stable than its headers. The hooks serve programs built with any CUDA since
// 11.2, so their signatures must not depend on the headers found at build time. A test compares
// every signature in hooks.def with the declarations of the installed headers.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemHandle = unsigned long long;  // CUmemGenericAllocationHandle
using CUarray = void*;
using CUcontext = void*;
using CUexternalMemory = void*;
using CUfunction = void*;
using CUgraph = void*;
using CUgraphExec = void*;
using CUgraphNode = void*;
using CUlibrary = void*;
using CUmemoryPool = void*;
using CUmipmappedArray = void*;
using CUmodule = void*;
using CUstream = void*;
using cudaArray_t = void*;
using cudaError_t = int;
using ncclResult_t = int;
using cudaEvent_t = void*;
using cudaExternalMemory_t = void*;
using cudaGraphExec_t = void*;
using cudaGraphNode_t = void*;
using cudaGraph_t = void*;
using cudaMemPool_t = void*;
using cudaMipmappedArray_t = void*;
using cudaStream_t = void*;

struct CodeLocation {  // c10::SourceLocation
    const char* function;
    const char* file;
    uint32_t line;
};

struct MemoryLocation {
    int type;  // kLocationDevice
    int id;
};

// The first members of CUmemAllocationProp; the rest is passed through unread.

struct MemoryProperties {
    int type;
    int handle_types;
    MemoryLocation location;
};

inline constexpr int kLocationDevice = 1;  // CU_MEM_LOCATION_TYPE_DEVICE

// CUmemPoolProps and cudaMemPoolProps.
struct PoolProperties {
    int type;
    int handle_types;
    MemoryLocation location;
    void* security_attributes;
    size_t most_bytes;  // 0: the maximum that the system allows
    unsigned char tail[56];
};

// CUDA_MEM_ALLOC_NODE_PARAMS, v1 and v2, and cudaMemAllocNodeParams.
struct AllocNodeParameters {
    PoolProperties pool;
    const void* access;
    size_t access_count;
    size_t bytes;
    CUdeviceptr address;  // set by the driver
};

// CUgraphNodeParams, with those members of its union that are about memory.
struct GraphNodeParameters {
    int type;  // kGraphNodeAlloc, kGraphNodeFree
    int reserved[3];

    union {
        AllocNodeParameters alloc;
        CUdeviceptr freed;
        unsigned char others[240];
    };
};

inline constexpr int kGraphNodeAlloc = 10;  // CU_GRAPH_NODE_TYPE_MEM_ALLOC
inline constexpr int kGraphNodeFree = 11;   // CU_GRAPH_NODE_TYPE_MEM_FREE

// CUDA_ARRAY_DESCRIPTOR.
struct ArrayDescriptor {
    size_t width;
    size_t height;
    int format;
    unsigned int channels;
};

// CUDA_ARRAY3D_DESCRIPTOR.
struct Array3dDescriptor {
    size_t width;
    size_t height;
    size_t depth;
    int format;
    unsigned int channels;
    unsigned int flags;
};

// CUDA_ARRAY_MEMORY_REQUIREMENTS.
struct ArrayRequirements {
    size_t bytes;
    size_t alignment;
    unsigned int reserved[4];
};

// cudaChannelFormatDesc: bits of each channel.
struct ChannelFormat {
    int bits[4];
    int kind;
};

struct Extent {  // cudaExtent
    size_t width;
    size_t height;
    size_t depth;
};

struct PitchedPointer {  // cudaPitchedPtr
    void* address;
    size_t pitch;
    size_t width;
    size_t height;
};

struct Dim3 {  // dim3
    unsigned int x, y, z;
};

struct IpcMemoryHandle {  // CUipcMemHandle, cudaIpcMemHandle_t
    unsigned char bytes[64];
};

struct NcclUniqueId {  // ncclUniqueId
    char bytes[128];
};

struct PoolPointer {  // CUmemPoolPtrExportData, cudaMemPoolPtrExportData
    unsigned char bytes[64];
};

// The first members of CUDA_EXTERNAL_MEMORY_HANDLE_DESC and cudaExternalMemoryHandleDesc.
struct ExternalMemoryDescriptor {
    int type;
    void* handle[2];
    unsigned long long bytes;
};

// The first members of CUDA_EXTERNAL_MEMORY_BUFFER_DESC and cudaExternalMemoryBufferDesc.
struct ExternalBufferDescriptor {
    unsigned long long offset;
    unsigned long long bytes;
};

struct MulticastProperties {  // CUmulticastObjectProp
    unsigned int devices;
    size_t bytes;
    unsigned long long handle_types;
    unsigned long long flags;
};

// Large enough for CUmemAllocationProp of every version, for our own calls that fill one in.
struct MemoryPropertiesBuffer {
    MemoryProperties head;
    unsigned char tail[128];
};

// These values are the same in the driver API and the runtime API.
inline constexpr int kSuccess = 0;
inline constexpr int kOutOfMemory = 2;     // CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation
inline constexpr int kNotInitialized = 3;  // CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitialization...
inline constexpr int kPointerAttributeDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr uint64_t kPerThreadStreamFlag = 2;       // CU_GET_PROC_ADDRESS_PER_THREAD_...
inline constexpr int kFirstFiveArgumentVersion = 12000;   // CUDA version since which
                                                          // cuGetProcAddress has five parameters

// The newest CUDA version whose entry points were compared with hooks.def. An entry point of a
// newer version may have another signature, so the hooks replace it only if its address is known.
inline constexpr int kNewestKnownVersion = 13030;

}  // namespace fragtrace::preload
