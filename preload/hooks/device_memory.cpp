// Hooks of device memory: linear, pitched and managed allocations, frees of all of them, memory
// info.
#include "hooks/hook_call.h"

namespace fragtrace::preload {
namespace {

template <Hook kHook, typename Pointer>
int allocate(const void* caller, Pointer* address, size_t bytes) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            call.allocation(result,
                            {.kind = EventKind::kDeviceAlloc,
                             .device = bytes == 0 ? kDeviceUnknown : call.current_device(),
                             .address = given(result, address),
                             .size = bytes});
        },
        address,
        bytes);
}

// The driver pads each row to the pitch. For a refused call, only the size without padding is
// known.
template <Hook kHook, typename Pointer, typename... Element>
int allocate_pitched(const void* caller,
                     Pointer* address,
                     size_t* pitch,
                     size_t width_bytes,
                     size_t height,
                     Element... element_bytes) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            call.allocation(result,
                            {.kind = EventKind::kDeviceAlloc,
                             .device = call.current_device(),
                             .address = given(result, address),
                             .size = product(result == kSuccess ? *pitch : width_bytes, height)});
        },
        address,
        pitch,
        width_bytes,
        height,
        element_bytes...);
}

template <Hook kHook>
int allocate_3d(const void* caller, PitchedPointer* pitched, Extent extent) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            const uint64_t rows = product(extent.height, extent.depth);
            call.allocation(
                result,
                {.kind = EventKind::kDeviceAlloc,
                 .device = call.current_device(),
                 .address = result == kSuccess ? number(pitched->address) : 0,
                 .size = product(result == kSuccess ? pitched->pitch : extent.width, rows)});
        },
        pitched,
        extent);
}

template <Hook kHook, typename Pointer>
int allocate_managed(const void* caller, Pointer* address, size_t bytes, unsigned attach_flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            call.allocation(result,
                            {.kind = EventKind::kManagedAlloc,
                             .device = call.current_device(),
                             .address = given(result, address),
                             .size = bytes,
                             .extra = attach_flags});
        },
        address,
        bytes,
        attach_flags);
}

// Ends linear, pitched, managed and stream-ordered memory. Programs free a null pointer to create a
// context: that is no event.
template <Hook kHook, typename Pointer>
int end(const void* caller, Pointer address) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            const uint64_t value = number(address);
            return value == 0 ? 0
                              : call.record({.kind = EventKind::kDeviceFree,
                                             .device = call.device_of(value),
                                             .address = value});
        },
        address);
}

template <Hook kHook>
int memory_info(const void* caller, size_t* free_bytes, size_t* total_bytes) {
    Look look(0);
    return around<kHook>(
        caller,
        [&look](const Call&) {
            look = Look(0);
            return uint64_t{0};
        },
        [&](Call& call, int result) {
            if (result == kSuccess && free_bytes != nullptr && total_bytes != nullptr) {
                call.memory_info(look, *free_bytes, *total_bytes);
            }
        },
        free_bytes,
        total_bytes);
}

}  // namespace

FT_HOOK_2(cuMemAlloc_v2, allocate)
FT_HOOK_2(cudaMalloc, allocate)
FT_HOOK_5(cuMemAllocPitch_v2, allocate_pitched)
FT_HOOK_4(cudaMallocPitch, allocate_pitched)
FT_HOOK_2(cudaMalloc3D, allocate_3d)
FT_HOOK_3(cuMemAllocManaged, allocate_managed)
FT_HOOK_3(cudaMallocManaged, allocate_managed)
FT_HOOK_1(cuMemFree_v2, end)
FT_HOOK_1(cudaFree, end)
FT_HOOK_2(cuMemGetInfo_v2, memory_info)
FT_HOOK_2(cudaMemGetInfo, memory_info)

}  // namespace fragtrace::preload
