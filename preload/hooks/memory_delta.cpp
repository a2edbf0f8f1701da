#include "hooks/memory_delta.h"

#include "hooks/hook_call.h"
#include "hooks/nvml.h"

namespace fragtrace::preload {
namespace {

// Returns false unless a context of that device is current.
bool free_by_driver(uint16_t device, const void* caller, uint64_t* bytes) {
    int current = -1;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    auto* context_device = real<Hook::k_cuCtxGetDevice>(caller);
    auto* info = real<Hook::k_cuMemGetInfo_v2>(caller);
    if (context_device == nullptr || info == nullptr || context_device(&current) != kSuccess ||
        (device != kDeviceUnknown && ordinal(current) != device) ||
        info(&free_bytes, &total_bytes) != kSuccess) {
        return false;
    }
    *bytes = free_bytes;
    return true;
}

bool free_by_nvml(uint16_t device, const void* caller, uint64_t* bytes) {
    NvmlMemory memory{};
    if (device == kDeviceUnknown || !nvml_memory(device, caller, &memory)) {
        return false;
    }
    *bytes = memory.free_bytes;
    return true;
}

}  // namespace

void MemoryDelta::before(bool allow_nvml) {
    if (free_by_driver(device_, caller_, &free_bytes_)) {
        source_ = Source::kDriver;
    } else if (allow_nvml && free_by_nvml(device_, caller_, &free_bytes_)) {
        source_ = Source::kNvml;
    }
}

uint64_t MemoryDelta::after() const {
    uint64_t free_bytes = 0;
    const bool known = source_ == Source::kDriver ? free_by_driver(device_, caller_, &free_bytes)
                       : source_ == Source::kNvml ? free_by_nvml(device_, caller_, &free_bytes)
                                                  : false;
    if (!known) {
        return kUnknown64;
    }
    return free_bytes_ > free_bytes ? free_bytes_ - free_bytes : 0;
}

const char* MemoryDelta::source() const {
    return source_ == Source::kDriver ? "cuMemGetInfo before and after its creation"
           : source_ == Source::kNvml ? "NVML before and after its creation"
                                      : "unknown";
}

}  // namespace fragtrace::preload
