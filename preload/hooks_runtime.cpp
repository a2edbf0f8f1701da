// Hooks of libcudart, where it is a shared library: device memory, memory info, reset, and the
// calls by which a caching pool shows what it does. Rules in hooks.h.
#include "frameworks/torch.h"
#include "hooks.h"

using namespace fragtrace;
using namespace fragtrace::preload;

extern "C" {

FT_PUBLIC cudaError_t cudaMalloc(void** address, size_t bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaMalloc>(caller);
    Call hooked(Layer::kRuntime, caller);
    if (call == nullptr || !hooked.sane()) {
        return kRuntimeNotInitialized;
    }
    hooked.start();
    const cudaError_t result = call(address, bytes);
    hooked.stop();
    if (hooked.records() && bytes != 0) {
        const uint16_t device = hooked.current_device();
        if (result == kSuccess) {
            hooked.allocated(
                EventKind::kDeviceAlloc, reinterpret_cast<uint64_t>(*address), bytes, device);
        } else {
            hooked.refused(bytes, result, device);
        }
    }
    return result;
}

FT_PUBLIC cudaError_t cudaFree(void* address) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaFree>(caller);
    Call hooked(Layer::kRuntime, caller);
    if (call == nullptr || !hooked.sane()) {
        return kRuntimeNotInitialized;
    }
    if (hooked.records() && address != nullptr) {
        const auto value = reinterpret_cast<uint64_t>(address);
        hooked.freeing(EventKind::kDeviceFree, value, 0, hooked.device_of(value));
    }
    return call(address);
}

FT_PUBLIC cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaMemGetInfo>(caller);
    Call hooked(Layer::kRuntime, caller);
    if (call == nullptr || !hooked.sane()) {
        return kRuntimeNotInitialized;
    }
    hooked.start();
    const cudaError_t result = call(free_bytes, total_bytes);
    hooked.stop();
    if (result == kSuccess && hooked.records() && free_bytes != nullptr && total_bytes != nullptr) {
        hooked.memory_info(*free_bytes, *total_bytes);
    }
    return result;
}

FT_PUBLIC cudaError_t cudaDeviceReset() {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaDeviceReset>(caller);
    Call hooked(Layer::kRuntime, caller);
    if (call == nullptr || !hooked.sane()) {
        return kRuntimeNotInitialized;
    }
    if (hooked.records()) {
        hooked.reset(hooked.current_device());
    }
    return call();
}

FT_PUBLIC cudaError_t cudaGetDeviceCount(int* count) {
    auto* call = real<Hook::k_cudaGetDeviceCount>(__builtin_return_address(0));
    if (call == nullptr) {
        return kRuntimeNotInitialized;
    }
    const cudaError_t result = call(count);
    if (result == kSuccess) {
        torch_prepare();
    }
    return result;
}

FT_PUBLIC cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaEventRecord>(caller);
    if (call == nullptr) {
        return kRuntimeNotInitialized;
    }
    const cudaError_t result = call(event, stream);
    if (result == kSuccess) {
        torch_event_recorded(caller, event, stream);
    }
    return result;
}

FT_PUBLIC cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                               cudaStream_t stream,
                                               unsigned int flags) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaEventRecordWithFlags>(caller);
    if (call == nullptr) {
        return kRuntimeNotInitialized;
    }
    const cudaError_t result = call(event, stream, flags);
    if (result == kSuccess) {
        torch_event_recorded(caller, event, stream);
    }
    return result;
}

FT_PUBLIC cudaError_t cudaEventQuery(cudaEvent_t event) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaEventQuery>(caller);
    if (call == nullptr) {
        return kRuntimeNotInitialized;
    }
    const cudaError_t result = call(event);
    if (result == kSuccess) {
        torch_event_complete(caller, event);
    }
    return result;
}

FT_PUBLIC cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const void* caller = __builtin_return_address(0);
    auto* call = real<Hook::k_cudaEventSynchronize>(caller);
    if (call == nullptr) {
        return kRuntimeNotInitialized;
    }
    const cudaError_t result = call(event);
    if (result == kSuccess) {
        torch_event_complete(caller, event);
    }
    return result;
}

}  // extern "C"
