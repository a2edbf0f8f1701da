// Compiles if every signature of hooks.def has the ABI of the declaration in the installed headers:
// the same number of parameters, each with the same size and class, and a result of the same size.
#define __CUDA_API_VERSION_INTERNAL  // also declares the old names
#include "hooks/cuda_abi.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <type_traits>

// Variants for the thread's default stream are not declared under their own names.
#define cudaMallocAsync_ptsz                  cudaMallocAsync
#define cudaMallocFromPoolAsync_ptsz          cudaMallocFromPoolAsync
#define cudaFreeAsync_ptsz                    cudaFreeAsync
#define cudaGraphUpload_ptsz                  cudaGraphUpload
#define cudaGraphLaunch_ptsz                  cudaGraphLaunch
#define cudaLaunchKernel_ptsz                 cudaLaunchKernel
#define cudaLaunchKernelExC_ptsz              cudaLaunchKernelExC
#define cudaLaunchCooperativeKernel_ptsz      cudaLaunchCooperativeKernel
#define cudaGetDriverEntryPoint_ptsz          cudaGetDriverEntryPoint
#define cudaGetDriverEntryPointByVersion_ptsz cudaGetDriverEntryPointByVersion
// Declared only for compilers of device code.
#define __cudaLaunchKernel      cudaLaunchKernel
#define __cudaLaunchKernel_ptsz cudaLaunchKernel

namespace fragtrace::preload {
namespace {

namespace ours {
#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    using symbol##_type = CUresult parameters;
#define FT_RUNTIME(symbol, since, family, parameters) using symbol##_type = cudaError_t parameters;
#define FT_CALLED_DRIVER(symbol, parameters)          using symbol##_type = CUresult parameters;
#define FT_CALLED_RUNTIME(symbol, parameters)         using symbol##_type = cudaError_t parameters;
#include "hooks/hooks.def"
}  // namespace ours

template <typename A, typename B>
constexpr bool kSameParameter =
    sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;

template <typename Theirs, typename Ours>
struct SameAbi : std::false_type {};

template <typename R1, typename R2, typename... A1, typename... A2>

requires(sizeof...(A1) == sizeof...(A2)) struct SameAbi<R1(A1...), R2(A2...)>
    : std::bool_constant<sizeof(R1) == sizeof(R2) && (kSameParameter<A1, A2> && ...)> {
};

#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    static_assert(SameAbi<decltype(::symbol), ours::symbol##_type>::value, #symbol);
#define FT_RUNTIME(symbol, since, family, parameters) \
    static_assert(SameAbi<decltype(::symbol), ours::symbol##_type>::value, #symbol);
#define FT_CALLED_DRIVER(symbol, parameters)  FT_DRIVER(symbol, , , , , parameters)
#define FT_CALLED_RUNTIME(symbol, parameters) FT_RUNTIME(symbol, , , parameters)
#include "hooks/hooks.def"

// Structures whose fields the hooks read.
#define FT_FIELD(theirs, field, ours, our_field)                         \
    static_assert(offsetof(theirs, field) == offsetof(ours, our_field)); \
    static_assert(sizeof(theirs::field) == sizeof(ours::our_field));
static_assert(sizeof(CUmemAllocationProp) <= sizeof(MemoryPropertiesBuffer));
static_assert(offsetof(CUmemAllocationProp, location) == offsetof(MemoryProperties, location));
FT_FIELD(CUmemLocation, id, MemoryLocation, id)
static_assert(sizeof(CUmemPoolProps) == sizeof(PoolProperties));
static_assert(sizeof(cudaMemPoolProps) == sizeof(PoolProperties));
static_assert(offsetof(CUmemPoolProps, location) == offsetof(PoolProperties, location));
FT_FIELD(CUmemPoolProps, maxSize, PoolProperties, most_bytes)
FT_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS_v1, bytesize, AllocNodeParameters, bytes)
FT_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr, AllocNodeParameters, address)
FT_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr, AllocNodeParameters, address)
FT_FIELD(cudaMemAllocNodeParams, bytesize, AllocNodeParameters, bytes)
FT_FIELD(cudaMemAllocNodeParams, dptr, AllocNodeParameters, address)
static_assert(offsetof(CUgraphNodeParams, alloc) == offsetof(GraphNodeParameters, alloc));
static_assert(offsetof(CUgraphNodeParams, free) == offsetof(GraphNodeParameters, freed));
FT_FIELD(CUDA_ARRAY_DESCRIPTOR, Format, ArrayDescriptor, format)
FT_FIELD(CUDA_ARRAY_DESCRIPTOR, NumChannels, ArrayDescriptor, channels)
FT_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth, Array3dDescriptor, depth)
FT_FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags, Array3dDescriptor, flags)
FT_FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, size, ArrayRequirements, bytes)
static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == sizeof(ArrayRequirements));
FT_FIELD(cudaChannelFormatDesc, f, ChannelFormat, kind)
FT_FIELD(cudaExtent, depth, Extent, depth)
FT_FIELD(cudaPitchedPtr, pitch, PitchedPointer, pitch)
static_assert(sizeof(CUipcMemHandle) == sizeof(IpcMemoryHandle));
static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(IpcMemoryHandle));
static_assert(sizeof(CUmemPoolPtrExportData) == sizeof(PoolPointer));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(PoolPointer));
FT_FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size, ExternalMemoryDescriptor, bytes)
FT_FIELD(cudaExternalMemoryHandleDesc, size, ExternalMemoryDescriptor, bytes)
FT_FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size, ExternalBufferDescriptor, bytes)
FT_FIELD(CUmulticastObjectProp, size, MulticastProperties, bytes)

static_assert(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == kPointerAttributeDeviceOrdinal);
static_assert(CU_MEM_LOCATION_TYPE_DEVICE == kLocationDevice);
static_assert(CUDA_ERROR_NOT_INITIALIZED == kNotInitialized);
static_assert(cudaErrorInitializationError == kNotInitialized);
static_assert(CUDA_ERROR_OUT_OF_MEMORY == kOutOfMemory);
static_assert(cudaErrorMemoryAllocation == kOutOfMemory);
static_assert(CU_GRAPH_NODE_TYPE_MEM_ALLOC == kGraphNodeAlloc);
static_assert(CU_GRAPH_NODE_TYPE_MEM_FREE == kGraphNodeFree);
static_assert(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM == kPerThreadStreamFlag);
// The hooks use these as plain numbers.
static_assert(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES == 3);
static_assert(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT == 5 && CU_MEMPOOL_ATTR_USED_MEM_CURRENT == 7);
static_assert(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT == 0);
static_assert(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT == 2);
static_assert(CU_STREAM_CAPTURE_STATUS_ACTIVE == 1 && CU_MEM_ALLOCATION_TYPE_PINNED == 1);
static_assert(CUDA_ARRAY3D_LAYERED == 1 && CUDA_ARRAY3D_CUBEMAP == 4);
static_assert(CUDA_ARRAY3D_SPARSE == 0x40 && CUDA_ARRAY3D_DEFERRED_MAPPING == 0x80);
static_assert(cudaArrayLayered == 1 && cudaArrayCubemap == 4);
static_assert(cudaArraySparse == 0x40 && cudaArrayDeferredMapping == 0x80);
static_assert(cudaChannelFormatKindFloat == 2 && CU_MEM_HANDLE_TYPE_FABRIC == 8);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == 75);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == 76);

}  // namespace
}  // namespace fragtrace::preload
