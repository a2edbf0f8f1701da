// Hooks of libcuda's virtual memory calls: address ranges, physical memory, mappings.
//
// A handle is released when its last reference is; a handle obtained again by
// cuMemRetainAllocationHandle needs a release of its own, which is not recorded, so that the trace
// has one create and one (last) release per handle.
#include "hooks.h"

using namespace fragtrace;
using namespace fragtrace::preload;

namespace fragtrace::preload {
namespace {

// Handles with extra references. Retaining is rare; a full table only ends the tracking.
struct Retained {
    uint64_t handle;  // 0 = free
    int64_t extra;
};

constexpr int kMaxRetained = 1024;
Retained g_retained[kMaxRetained];
int g_retained_used;  // slots that were ever taken

void add_reference(uint64_t handle) {
    for (Retained& slot : g_retained) {
        uint64_t expected = 0;
        if (__atomic_compare_exchange_n(
                &slot.handle, &expected, handle, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            expected == handle) {
            __atomic_fetch_add(&slot.extra, 1, __ATOMIC_ACQ_REL);
            __atomic_fetch_add(&g_retained_used, 1, __ATOMIC_RELEASE);
            return;
        }
    }
}

// True if an extra reference was there and is gone now.
bool drop_reference(uint64_t handle) {
    if (__atomic_load_n(&g_retained_used, __ATOMIC_ACQUIRE) == 0) {
        return false;
    }
    for (Retained& slot : g_retained) {
        if (__atomic_load_n(&slot.handle, __ATOMIC_ACQUIRE) != handle) {
            continue;
        }
        int64_t extra = __atomic_load_n(&slot.extra, __ATOMIC_ACQUIRE);
        while (extra > 0) {
            if (__atomic_compare_exchange_n(
                    &slot.extra, &extra, extra - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                return true;
            }
        }
        return false;
    }
    return false;
}

uint16_t device_of_location(const MemoryLocation& location) {
    // Host memory lies on no device.
    return location.type == kLocationDevice && location.id >= 0 && location.id < kDeviceUnknown
               ? static_cast<uint16_t>(location.id)
               : kDeviceUnknown;
}

uint16_t device_of_handle(const Call& hooked, CUmemHandle handle, const void* caller) {
    MemoryPropertiesBuffer properties{};
    auto* get = real<Hook::k_cuMemGetAllocationPropertiesFromHandle>(caller);
    if (get != nullptr && get(&properties.head, handle) == kSuccess) {
        return device_of_location(properties.head.location);
    }
    return hooked.current_device();
}

}  // namespace
}  // namespace fragtrace::preload

extern "C" {

FT_PUBLIC CUresult cuMemAddressReserve(CUdeviceptr* address,
                                       size_t bytes,
                                       size_t alignment,
                                       CUdeviceptr hint,
                                       unsigned long long flags) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemAddressReserve>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    hooked.start();
    const CUresult result = call(address, bytes, alignment, hint, flags);
    hooked.stop();
    if (result == kSuccess && hooked.records()) {
        hooked.allocated(EventKind::kAddressReserve, *address, bytes, hooked.current_device());
    }
    return result;
}

FT_PUBLIC CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemAddressFree>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    if (hooked.records()) {
        hooked.freeing(EventKind::kAddressFree, address, bytes, hooked.current_device());
    }
    return call(address, bytes);
}

FT_PUBLIC CUresult cuMemCreate(CUmemHandle* handle,
                               size_t bytes,
                               const MemoryProperties* properties,
                               unsigned long long flags) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemCreate>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    hooked.start();
    const CUresult result = call(handle, bytes, properties, flags);
    hooked.stop();
    if (hooked.records() && bytes != 0) {
        const uint16_t device =
            properties == nullptr ? kDeviceUnknown : device_of_location(properties->location);
        if (result == kSuccess) {
            hooked.allocated(EventKind::kPhysicalCreate, *handle, bytes, device);
        } else {
            hooked.refused(bytes, result, device);
        }
    }
    return result;
}

FT_PUBLIC CUresult cuMemRelease(CUmemHandle handle) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemRelease>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    if (hooked.records() && !drop_reference(handle)) {
        hooked.freeing(
            EventKind::kPhysicalRelease, handle, 0, device_of_handle(hooked, handle, caller));
    }
    return call(handle);
}

FT_PUBLIC CUresult cuMemMap(CUdeviceptr address,
                            size_t bytes,
                            size_t offset,
                            CUmemHandle handle,
                            unsigned long long flags) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemMap>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    hooked.start();
    const CUresult result = call(address, bytes, offset, handle, flags);
    hooked.stop();
    if (result == kSuccess && hooked.records()) {
        hooked.mapped(address, bytes, handle, device_of_handle(hooked, handle, caller));
    }
    return result;
}

FT_PUBLIC CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemUnmap>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    if (hooked.records()) {
        hooked.freeing(EventKind::kUnmap, address, bytes, hooked.device_of(address));
    }
    return call(address, bytes);
}

FT_PUBLIC CUresult cuMemRetainAllocationHandle(CUmemHandle* handle, void* address) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemRetainAllocationHandle>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    const CUresult result = call(handle, address);
    if (result == kSuccess && hooked.records()) {
        add_reference(*handle);
    }
    return result;
}

}  // extern "C"
