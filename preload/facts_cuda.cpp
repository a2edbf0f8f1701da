// See facts_cuda.h.
#include "facts_cuda.h"

#include "hooks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr char kVirtualName[] = "fragtrace virtual GPU";

int g_recorded_pid;

void record_number(const char* key, unsigned long long value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", value);
    record_fact(key, text);
}

void record_device(int device, const void* caller) {
    char key[64];
    auto* get_name = real<Hook::k_cuDeviceGetName>(caller);
    char name[256] = "";
    if (get_name != nullptr && get_name(name, sizeof name, device) == kSuccess) {
        name[sizeof name - 1] = '\0';
        snprintf(key, sizeof key, "device.%d.name", device);
        record_fact(key, name);
        if (strstr(name, kVirtualName) != nullptr) {
            record_fact("virtual", "1");
        }
    }
    size_t bytes = 0;
    auto* get_total = real<Hook::k_cuDeviceTotalMem_v2>(caller);
    if (get_total != nullptr && get_total(&bytes, device) == kSuccess) {
        snprintf(key, sizeof key, "device.%d.total_bytes", device);
        record_number(key, bytes);
    }
}

}  // namespace

void record_cuda_facts(const void* caller) {
    const int pid = getpid();
    if (__atomic_exchange_n(&g_recorded_pid, pid, __ATOMIC_RELAXED) == pid) {
        return;
    }
    int version = 0;
    auto* driver_version = real<Hook::k_cuDriverGetVersion>(caller);
    if (driver_version != nullptr && driver_version(&version) == kSuccess) {
        record_number("cuda_driver_version", static_cast<unsigned>(version));
    }
    auto* runtime_version = real<Hook::k_cudaRuntimeGetVersion>(caller);
    if (runtime_version != nullptr && runtime_version(&version) == kSuccess) {
        record_number("cuda_runtime_version", static_cast<unsigned>(version));
    }
    int count = 0;
    auto* get_count = real<Hook::k_cuDeviceGetCount>(caller);
    if (get_count == nullptr || get_count(&count) != kSuccess) {
        return;
    }
    record_number("device.count", static_cast<unsigned>(count));
    for (int device = 0; device < count; ++device) {
        record_device(device, caller);
    }
}

}  // namespace fragtrace::preload
