#include "hooks/memory_delta.h"

#include "hooks/hook_call.h"
#include "hooks/nvml.h"

#include <unistd.h>

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

// The memory of this process by NVML. Returns false if NVML does not list it. A container may use
// other process numbers than the host, so the number found may belong to another process.
bool own_by_nvml(uint16_t device, const void* caller, uint64_t* bytes) {
    constexpr int kMost = 64;
    NvmlProcess processes[kMost];
    int total = 0;
    const int count =
        device == kDeviceUnknown ? 0 : nvml_processes(device, caller, processes, kMost, &total);
    const auto own = static_cast<uint32_t>(getpid());
    for (int i = 0; i < count; ++i) {
        if (processes[i].pid == own) {
            *bytes = processes[i].used_bytes;
            return true;
        }
    }
    return false;
}

}  // namespace

void MemoryDelta::before(bool allow_nvml) {
    if (free_by_driver(device_, caller_, &free_bytes_)) {
        source_ = Source::kDriver;
    } else if (allow_nvml && free_by_nvml(device_, caller_, &free_bytes_)) {
        source_ = Source::kNvml;
        uint64_t own_bytes = 0;
        listed_before_ = own_by_nvml(device_, caller_, &own_bytes);
    }
}

uint64_t MemoryDelta::after() {
    uint64_t own_bytes = kUnknown64;
    if (source_ == Source::kNvml && !listed_before_ && own_by_nvml(device_, caller_, &own_bytes) &&
        own_bytes != kUnknown64) {
        source_ = Source::kNvmlProcess;
        return own_bytes;
    }
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
    return source_ == Source::kDriver        ? "cuMemGetInfo before and after its creation"
           : source_ == Source::kNvml        ? "NVML before and after its creation"
           : source_ == Source::kNvmlProcess ? "NVML for this process, after its creation"
                                             : "unknown";
}

}  // namespace fragtrace::preload
