// Hooks of runtime calls that show the actions of a caching allocator. hook_call.h has the rules.
#include "hooks/framework.h"

#include "hooks/hook_call.h"

using namespace fragtrace;
using namespace fragtrace::preload;

namespace {

// On success, the CUDA event has completed.
template <Hook kHook>
cudaError_t look_at_event(const void* caller, cudaEvent_t event) {
    auto* call = real<kHook>(caller);
    if (call == nullptr) {
        return kNotInitialized;
    }
    const cudaError_t result = call(event);
    if (result == kSuccess) {
        torch_event_complete(caller, event);
    }
    return result;
}

}  // namespace

extern "C" {

FT_PUBLIC cudaError_t cudaGetDeviceCount(int* count) {
    auto* call = real<Hook::k_cudaGetDeviceCount>(__builtin_return_address(0));
    if (call == nullptr) {
        return kNotInitialized;
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
        return kNotInitialized;
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
        return kNotInitialized;
    }
    const cudaError_t result = call(event, stream, flags);
    if (result == kSuccess) {
        torch_event_recorded(caller, event, stream);
    }
    return result;
}

FT_PUBLIC cudaError_t cudaEventQuery(cudaEvent_t event) {
    return look_at_event<Hook::k_cudaEventQuery>(__builtin_return_address(0), event);
}

FT_PUBLIC cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return look_at_event<Hook::k_cudaEventSynchronize>(__builtin_return_address(0), event);
}

}  // extern "C"
