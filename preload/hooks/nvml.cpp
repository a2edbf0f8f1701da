#include "hooks/nvml.h"

#include "hooks/hook_call.h"
#include "hooks/resolve.h"

#include <dlfcn.h>
#include <initializer_list>
#include <stdio.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr int kNvmlSuccess = 0;
constexpr int kMostProcesses = 256;

using Device = void*;

struct MemoryV1 {
    unsigned long long total, free, used;
};

// For versions 2 and 3 of the function; version 1 has only the first two members.
struct ProcessV3 {
    unsigned int pid;
    unsigned long long used_bytes;
    unsigned int gpu_instance;
    unsigned int compute_instance;
};

struct ProcessV1 {
    unsigned int pid;
    unsigned long long used_bytes;
};

using ListFunction = int (*)(Device, unsigned int*, void*);

struct List {
    ListFunction function;
    bool is_v1;
};

struct Library {
    int (*by_uuid)(const char*, Device*);
    int (*by_bus)(const char*, Device*);
    int (*memory)(Device, MemoryV1*);
    int (*mig_mode)(Device, unsigned int*, unsigned int*);
    List compute;
    List graphics;
};

enum : int { kClosed, kOpening, kOpen, kNone };

Library g_library;
int g_state;

template <typename Function>
void find(void* handle, const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(real_dlsym(handle, name));
}

List find_list(void* handle, const char* name) {
    char versioned[80];
    for (const char* suffix : {"_v3", "_v2", ""}) {
        snprintf(versioned, sizeof versioned, "%s%s", name, suffix);
        void* symbol = real_dlsym(handle, versioned);
        if (symbol != nullptr) {
            return {reinterpret_cast<ListFunction>(symbol), suffix[0] == '\0'};
        }
    }
    return {};
}

bool open_library() {
    void* handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) {
        (void)dlerror();
        return false;
    }
    int (*init)() = nullptr;
    find(handle, "nvmlInit_v2", &init);
    find(handle, "nvmlDeviceGetHandleByUUID", &g_library.by_uuid);
    find(handle, "nvmlDeviceGetHandleByPciBusId_v2", &g_library.by_bus);
    find(handle, "nvmlDeviceGetMemoryInfo", &g_library.memory);
    find(handle, "nvmlDeviceGetMigMode", &g_library.mig_mode);
    g_library.compute = find_list(handle, "nvmlDeviceGetComputeRunningProcesses");
    g_library.graphics = find_list(handle, "nvmlDeviceGetGraphicsRunningProcesses");
    (void)dlerror();
    return init != nullptr && init() == kNvmlSuccess;
}

// If another thread is opening the library, this returns false instead of waiting.
bool ready() {
    int state = __atomic_load_n(&g_state, __ATOMIC_ACQUIRE);
    if (state == kClosed &&
        __atomic_compare_exchange_n(
            &g_state, &state, kOpening, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        state = open_library() ? kOpen : kNone;
        __atomic_store_n(&g_state, state, __ATOMIC_RELEASE);
    }
    return state == kOpen;
}

// Finds the device by UUID or PCI bus id, never by index: NVML ignores CUDA_VISIBLE_DEVICES.
bool find_device(uint16_t device, const void* caller, Device* found) {
    if (!ready()) {
        return false;
    }
    unsigned char uuid[16];
    auto* get_uuid = real<Hook::k_cuDeviceGetUuid_v2>(caller);
    if (get_uuid != nullptr && g_library.by_uuid != nullptr && get_uuid(uuid, device) == kSuccess) {
        for (const char* prefix : {"MIG", "GPU"}) {
            char text[41];
            format_uuid(prefix, uuid, text);
            if (g_library.by_uuid(text, found) == kNvmlSuccess) {
                return true;
            }
        }
    }
    char bus[32];
    auto* get_bus = real<Hook::k_cuDeviceGetPCIBusId>(caller);
    return get_bus != nullptr && g_library.by_bus != nullptr &&
           get_bus(bus, sizeof bus, device) == kSuccess &&
           g_library.by_bus(bus, found) == kNvmlSuccess;
}

struct Found {
    NvmlProcess* processes;
    int capacity;
    int count;
    int total;
};

void add(Found* found, unsigned pid, uint64_t used_bytes) {
    for (int i = 0; i < found->count; ++i) {
        if (found->processes[i].pid == pid) {
            return;  // a process with both kinds of contexts: its memory counts once
        }
    }
    ++found->total;
    if (found->count < found->capacity) {
        found->processes[found->count++] = {pid, used_bytes};
    }
}

bool add_list(Device device, const List& list, Found* found) {
    // The largest version, so that every version fits.
    static ProcessV3 buffer[kMostProcesses];
    unsigned int count = kMostProcesses;
    if (list.function == nullptr || list.function(device, &count, buffer) != kNvmlSuccess) {
        return false;
    }
    for (unsigned int i = 0; i < count && i < kMostProcesses; ++i) {
        if (list.is_v1) {
            const auto& process = reinterpret_cast<const ProcessV1*>(buffer)[i];
            add(found, process.pid, process.used_bytes);
        } else {
            add(found, buffer[i].pid, buffer[i].used_bytes);
        }
    }
    return true;
}

}  // namespace

bool nvml_memory(uint16_t device, const void* caller, NvmlMemory* memory) {
    Device found = nullptr;
    MemoryV1 bytes{};
    if (!find_device(device, caller, &found) || g_library.memory == nullptr ||
        g_library.memory(found, &bytes) != kNvmlSuccess) {
        return false;
    }
    *memory = {bytes.total, bytes.free, bytes.used};
    return true;
}

int nvml_processes(
    uint16_t device, const void* caller, NvmlProcess* processes, int capacity, int* total) {
    static int busy;  // protects the buffer of add_list
    Device handle = nullptr;
    if (!find_device(device, caller, &handle) ||
        __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE) != 0) {
        return -1;
    }
    Found found{processes, capacity, 0, 0};
    const bool compute = add_list(handle, g_library.compute, &found);
    const bool graphics = add_list(handle, g_library.graphics, &found);
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
    *total = found.total;
    return compute || graphics ? found.count : -1;
}

int nvml_mig_mode(uint16_t device, const void* caller) {
    Device found = nullptr;
    unsigned int current = 0;
    unsigned int pending = 0;
    if (!find_device(device, caller, &found) || g_library.mig_mode == nullptr ||
        g_library.mig_mode(found, &current, &pending) != kNvmlSuccess) {
        return -1;
    }
    return current != 0 ? 1 : 0;
}

void format_uuid(const char* prefix, const unsigned char* uuid, char* text) {
    int length = snprintf(text, 41, "%s-", prefix);
    for (int i = 0; i < 16; ++i) {
        const char* dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        length += snprintf(
            text + length, static_cast<size_t>(41 - length), "%s%02x", dash, unsigned{uuid[i]});
    }
}

}  // namespace fragtrace::preload
