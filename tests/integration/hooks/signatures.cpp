// Compiles if every signature of hooks.def has the ABI of the installed headers' declaration: the
// same number of parameters, each of the same size and class, and a result of the same size.
#define __CUDA_API_VERSION_INTERNAL  // declares the old spellings too
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <type_traits>

namespace fragtrace::preload {
namespace {

// Our names for CUDA's types, apart from those of the headers included above.
namespace ours {
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemHandle = unsigned long long;
using cudaError_t = int;
using cudaEvent_t = void*;
using cudaStream_t = void*;

struct MemoryProperties {
    int type;
    int handle_types;

    struct {
        int type;
        int id;
    } location;
};

#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    using symbol##_type = CUresult parameters;
#define FT_RUNTIME(symbol, since, family, parameters) using symbol##_type = cudaError_t parameters;
#define FT_CALLED_DRIVER(symbol, parameters)          using symbol##_type = CUresult parameters;
#define FT_CALLED_RUNTIME(symbol, parameters)         using symbol##_type = cudaError_t parameters;
#include "hooks.def"
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

#define FT_SAME(symbol) \
    static_assert(SameAbi<decltype(::symbol), ours::symbol##_type>::value, #symbol);
#define FT_DRIVER(symbol, base, since, stream, family, parameters) FT_SAME(symbol)
#define FT_CALLED_DRIVER(symbol, parameters)                       FT_SAME(symbol)
#define FT_CALLED_RUNTIME(symbol, parameters)                      FT_SAME(symbol)
#include "hooks.def"

static_assert(sizeof(CUmemAllocationProp) <= sizeof(ours::MemoryProperties) + 128);
static_assert(offsetof(CUmemAllocationProp, location) ==
              offsetof(ours::MemoryProperties, location));
static_assert(offsetof(CUmemLocation, id) == sizeof(int));
static_assert(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == 9 && CU_MEM_LOCATION_TYPE_DEVICE == 1);
static_assert(CUDA_ERROR_NOT_INITIALIZED == 3 && cudaErrorInitializationError == 3);
static_assert(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM == 2);
static_assert(SameAbi<decltype(::cudaMalloc), ours::cudaMalloc_type>::value);
static_assert(SameAbi<decltype(::cudaFree), ours::cudaFree_type>::value);
static_assert(SameAbi<decltype(::cudaMemGetInfo), ours::cudaMemGetInfo_type>::value);
static_assert(SameAbi<decltype(::cudaDeviceReset), ours::cudaDeviceReset_type>::value);
static_assert(SameAbi<decltype(::cudaGetDeviceCount), ours::cudaGetDeviceCount_type>::value);
static_assert(SameAbi<decltype(::cudaEventRecord), ours::cudaEventRecord_type>::value);
static_assert(
    SameAbi<decltype(::cudaEventRecordWithFlags), ours::cudaEventRecordWithFlags_type>::value);
static_assert(SameAbi<decltype(::cudaEventQuery), ours::cudaEventQuery_type>::value);
static_assert(SameAbi<decltype(::cudaEventSynchronize), ours::cudaEventSynchronize_type>::value);

}  // namespace
}  // namespace fragtrace::preload
