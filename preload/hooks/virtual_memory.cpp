// Hooks of libcuda's virtual memory calls: address ranges, physical memory, mappings, sharing of
// physical memory. Every reference to a handle is an event (create, retain, import), and so is
// every release: the memory ends with the last one.
#include "hooks/hook_call.h"
#include "system/hash.h"

namespace fragtrace::preload {
namespace {

uint16_t device_of_handle(const Call& call, CUmemHandle handle) {
    MemoryPropertiesBuffer properties{};
    auto* get = real<Hook::k_cuMemGetAllocationPropertiesFromHandle>(call.caller());
    return get != nullptr && get(&properties.head, handle) == kSuccess
               ? device_of_location(properties.head.location)
               : call.current_device();
}

template <Hook kHook>
int reserve(const void* caller,
            CUdeviceptr* address,
            size_t bytes,
            size_t alignment,
            CUdeviceptr hint,
            unsigned long long flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.allocation(kSuccess,
                            {.kind = EventKind::kAddressReserve,
                             .device = call.current_device(),
                             .address = *address,
                             .size = bytes});
        },
        address,
        bytes,
        alignment,
        hint,
        flags);
}

template <Hook kHook>
int free_address(const void* caller, CUdeviceptr address, size_t bytes) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kAddressFree,
                                .device = call.current_device(),
                                .address = address,
                                .size = bytes});
        },
        address,
        bytes);
}

template <Hook kHook>
int create(const void* caller,
           CUmemHandle* handle,
           size_t bytes,
           const MemoryProperties* properties,
           unsigned long long flags) {
    return recorded<kHook>(
        caller,
        [&](Call& call, int result) {
            call.allocation(
                result,
                {.kind = EventKind::kPhysicalCreate,
                 .device = properties == nullptr ? kDeviceUnknown
                                                 : device_of_location(properties->location),
                 .address = given(result, handle),
                 .size = bytes});
        },
        handle,
        bytes,
        properties,
        flags);
}

// A multicast object represents memory of several devices and has none itself.
template <Hook kHook>
int create_multicast(const void* caller,
                     CUmemHandle* handle,
                     const MulticastProperties* properties) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) { call.record({.kind = EventKind::kPhysicalCreate, .address = *handle}); },
        handle,
        properties);
}

template <Hook kHook>
int release(const void* caller, CUmemHandle handle) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kPhysicalRelease,
                                .device = device_of_handle(call, handle),
                                .address = handle});
        },
        handle);
}

template <Hook kHook>
int map(const void* caller,
        CUdeviceptr address,
        size_t bytes,
        size_t offset,
        CUmemHandle handle,
        unsigned long long flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kMap,
                         .device = device_of_handle(call, handle),
                         .address = address,
                         .size = bytes,
                         .extra = handle});
        },
        address,
        bytes,
        offset,
        handle,
        flags);
}

template <Hook kHook>
int unmap(const void* caller, CUdeviceptr address, size_t bytes) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kUnmap,
                                .device = call.device_of(address),
                                .address = address,
                                .size = bytes});
        },
        address,
        bytes);
}

template <Hook kHook>
int retain(const void* caller, CUmemHandle* handle, void* address) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kPhysicalRetain,
                         .device = device_of_handle(call, *handle),
                         .address = *handle});
        },
        handle,
        address);
}

template <Hook kHook>
int export_handle(const void* caller,
                  void* shared,
                  CUmemHandle handle,
                  int handle_type,
                  unsigned long long flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kExport,
                         .device = device_of_handle(call, handle),
                         .address = handle,
                         .extra = hash_of_shared(shared, handle_type)});
        },
        shared,
        handle,
        handle_type,
        flags);
}

template <Hook kHook>
int import_handle(const void* caller, CUmemHandle* handle, void* shared, int handle_type) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kImport,
                         .device = device_of_handle(call, *handle),
                         .address = *handle,
                         .size = kUnknown64,
                         .extra = hash_of_shared(shared, handle_type)});
        },
        handle,
        shared,
        handle_type);
}

}  // namespace

FT_HOOK_5(cuMemAddressReserve, reserve)
FT_HOOK_2(cuMemAddressFree, free_address)
FT_HOOK_4(cuMemCreate, create)
FT_HOOK_1(cuMemRelease, release)
FT_HOOK_5(cuMemMap, map)
FT_HOOK_2(cuMemUnmap, unmap)
FT_HOOK_4(cuMemSetAccess, watched)
FT_HOOK_2(cuMemRetainAllocationHandle, retain)
FT_HOOK_4(cuMemExportToShareableHandle, export_handle)
FT_HOOK_3(cuMemImportFromShareableHandle, import_handle)
FT_HOOK_2(cuMulticastCreate, create_multicast)
FT_HOOK_6(cuMulticastBindMem, watched)
FT_HOOK_5(cuMulticastBindAddr, watched)

}  // namespace fragtrace::preload
