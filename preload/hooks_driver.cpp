// Hooks of libcuda: device memory, memory info, device reset. Rules in hooks.h.
#include "hooks.h"

using namespace fragtrace;
using namespace fragtrace::preload;

namespace fragtrace::preload {
namespace {

template <Hook kHook>
CUresult reset_primary_context(CUdevice device, const void* caller) {
    auto* call = real<kHook>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    if (hooked.records()) {
        hooked.reset(static_cast<uint16_t>(device));
    }
    return call(device);
}

// Only the last release destroys the context, which the driver tells afterwards.
template <Hook kHook>
CUresult release_primary_context(CUdevice device, const void* caller) {
    auto* call = real<kHook>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    const CUresult result = call(device);
    if (result == kSuccess && hooked.records()) {
        unsigned int flags = 0;
        int active = 1;
        auto* state = real<Hook::k_cuDevicePrimaryCtxGetState>(caller);
        if (state != nullptr && state(device, &flags, &active) == kSuccess && active == 0) {
            hooked.reset(static_cast<uint16_t>(device));
        }
    }
    return result;
}

}  // namespace
}  // namespace fragtrace::preload

extern "C" {

FT_PUBLIC CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemAlloc_v2>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    hooked.start();
    const CUresult result = call(address, bytes);
    hooked.stop();
    if (hooked.records() && bytes != 0) {
        const uint16_t device = hooked.current_device();
        if (result == kSuccess) {
            hooked.allocated(EventKind::kDeviceAlloc, *address, bytes, device);
        } else {
            hooked.refused(bytes, result, device);
        }
    }
    return result;
}

FT_PUBLIC CUresult cuMemFree_v2(CUdeviceptr address) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemFree_v2>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    if (hooked.records() && address != 0) {
        hooked.freeing(EventKind::kDeviceFree, address, 0, hooked.device_of(address));
    }
    return call(address);
}

FT_PUBLIC CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cuMemGetInfo_v2>(caller);
    Call hooked(Layer::kDriver, caller);
    if (call == nullptr || !hooked.sane()) {
        return kDriverNotInitialized;
    }
    hooked.start();
    const CUresult result = call(free_bytes, total_bytes);
    hooked.stop();
    if (result == kSuccess && hooked.records() && free_bytes != nullptr && total_bytes != nullptr) {
        hooked.memory_info(*free_bytes, *total_bytes);
    }
    return result;
}

FT_PUBLIC CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    return reset_primary_context<Hook::k_cuDevicePrimaryCtxReset>(device,
                                                                  __builtin_return_address(0));
}

FT_PUBLIC CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    return reset_primary_context<Hook::k_cuDevicePrimaryCtxReset_v2>(device,
                                                                     __builtin_return_address(0));
}

FT_PUBLIC CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    return release_primary_context<Hook::k_cuDevicePrimaryCtxRelease>(device,
                                                                      __builtin_return_address(0));
}

FT_PUBLIC CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return release_primary_context<Hook::k_cuDevicePrimaryCtxRelease_v2>(
        device, __builtin_return_address(0));
}

}  // extern "C"
