// The part of NVML that frameworks call: number and names of devices, memory, other processes, and
// "no NVLink". For shared cards it reads the book of the cards (common/card_book.h). A process that
// shares its cards with nobody sees only its context. More processes can be simulated:
// FRAGTRACE_VIRTUAL_GPU_PROCESSES=PID:BYTES[,PID:BYTES...]
#include "common/card_book.h"
#include "common/config.h"
#include "common/stub.h"

#include <cstdint>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using fragtrace::vgpu::Config;
using fragtrace::vgpu::config;

namespace {

constexpr int kSuccess = 0;
constexpr int kUninitialized = 1;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

// NVML ignores CUDA_VISIBLE_DEVICES: it counts all devices.
int physical_count() {
    static int count = -1;
    if (count < 0) {
        const Config all = fragtrace::vgpu::parse_config(getenv("FRAGTRACE_VIRTUAL_GPU"), nullptr);
        const bool valid = all.status == Config::kValid && config().status == Config::kValid;
        count = valid ? all.device_count : 0;
    }
    return count;
}

// A device's handle is its index plus one.
int index_of(void* device) {
    const intptr_t index = reinterpret_cast<intptr_t>(device) - 1;
    return index >= 0 && index < physical_count() ? static_cast<int>(index) : -1;
}

int handle_of(int index, void** out) {
    if (out == nullptr || index < 0 || index >= physical_count()) return kInvalidArgument;
    *out = reinterpret_cast<void*>(intptr_t{index} + 1);
    return kSuccess;
}

int copy_text(const char* text, char* out, unsigned size) {
    if (out == nullptr) return kInvalidArgument;
    if (strlen(text) + 1 > size) return kInsufficientSize;
    memcpy(out, text, strlen(text) + 1);
    return kSuccess;
}

// Calls a function of the driver if the driver is loaded.
template <typename... Arguments>
bool ask_driver(const char* name, Arguments... arguments) {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return false;
    auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name));
    dlclose(driver);
    return function != nullptr && function(arguments...) == kSuccess;
}

// Returns whether this process has a context on the device. Devices are matched by UUID because
// CUDA may number them differently.
bool has_context(int index) {
    unsigned char wanted[16];
    unsigned char uuid[16];
    fragtrace::vgpu::device_uuid(index, wanted);
    for (int ordinal = 0; ask_driver("cuDeviceGetUuid_v2", uuid, ordinal); ++ordinal) {
        unsigned flags = 0;
        int active = 0;
        if (memcmp(uuid, wanted, sizeof uuid) == 0) {
            return ask_driver("cuDevicePrimaryCtxGetState", ordinal, &flags, &active) &&
                   active != 0;
        }
    }
    return false;
}

struct Process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance;
    unsigned compute_instance;
};

bool cards_are_shared() {
    return config().cards[0] != '\0';
}

// Where to put processes: at most `room` of them. All count.
struct ProcessList {
    Process* out;
    unsigned room;
    unsigned count;
    unsigned long long used;
};

void add_process(const Process& process, ProcessList* list) {
    list->used += process.used;
    if (process.pid == 0) return;  // of another container: a list in a container does not have it
    if (list->count < list->room) list->out[list->count] = process;
    ++list->count;
}

// Finds the processes of shared cards, and the simulated ones, which are on the first device.
void find_processes(int index, ProcessList* list) {
    if (cards_are_shared()) {
        fragtrace::vgpu::visit_card_users(
            index,
            [](const fragtrace::vgpu::CardUser& user, void* data) {
                add_process({unsigned(user.process), user.bytes, ~0u, ~0u},
                            static_cast<ProcessList*>(data));
            },
            list);
    }
    const char* text = getenv("FRAGTRACE_VIRTUAL_GPU_PROCESSES");
    Process process{0, 0, ~0u, ~0u};
    while (index == 0 && text != nullptr &&
           fragtrace::vgpu::next_simulated_process(&text, &process.pid, &process.used)) {
        add_process(process, list);
    }
}

unsigned long long used_bytes(int index) {
    ProcessList list{nullptr, 0, 0, 0};
    find_processes(index, &list);
    return list.used +
           (!cards_are_shared() && has_context(index) ? config().card.context_bytes : 0);
}

struct Memory {
    unsigned long long total, free, used;
};

struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

}  // namespace

extern "C" {

FT_EXPORT int nvmlInit_v2(void) {
    return physical_count() > 0 ? kSuccess : kUninitialized;
}

FT_EXPORT int nvmlInit(void) {
    return nvmlInit_v2();
}

FT_EXPORT int nvmlInitWithFlags(unsigned) {
    return nvmlInit_v2();
}

FT_EXPORT int nvmlShutdown(void) {
    return kSuccess;
}

FT_EXPORT const char* nvmlErrorString(int result) {
    return result == kSuccess ? "Success" : result == kNotSupported ? "Not Supported" : "Error";
}

FT_EXPORT int nvmlSystemGetDriverVersion(char* out, unsigned size) {
    return copy_text("fragtrace-virtual", out, size);
}

FT_EXPORT int nvmlSystemGetNVMLVersion(char* out, unsigned size) {
    return copy_text("fragtrace-virtual", out, size);
}

FT_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
    if (version == nullptr) return kInvalidArgument;
    *version = 13000;
    return kSuccess;
}

FT_EXPORT int nvmlSystemGetCudaDriverVersion(int* version) {
    return nvmlSystemGetCudaDriverVersion_v2(version);
}

FT_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
    if (count == nullptr) return kInvalidArgument;
    *count = static_cast<unsigned>(physical_count());
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetCount(unsigned* count) {
    return nvmlDeviceGetCount_v2(count);
}

FT_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    return handle_of(static_cast<int>(index), device);
}

FT_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* text, void** device) {
    unsigned domain = 0;
    unsigned bus = 0;
    if (text == nullptr || sscanf(text, "%x:%x:", &domain, &bus) != 2) return kInvalidArgument;
    for (int i = 0; i < physical_count(); ++i) {
        if (unsigned(fragtrace::vgpu::pci_bus_of(i)) == bus) return handle_of(i, device);
    }
    return kNotFound;
}

FT_EXPORT int nvmlDeviceGetHandleByUUID(const char* text, void** device) {
    for (int i = 0; text != nullptr && i < physical_count(); ++i) {
        char uuid[fragtrace::vgpu::kUuidTextBytes];
        fragtrace::vgpu::uuid_text(i, uuid);
        if (strcmp(uuid, text) == 0) return handle_of(i, device);
    }
    return kNotFound;
}

FT_EXPORT int nvmlDeviceGetIndex(void* device, unsigned* index) {
    if (index_of(device) < 0 || index == nullptr) return kInvalidArgument;
    *index = static_cast<unsigned>(index_of(device));
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetUUID(void* device, char* out, unsigned size) {
    if (index_of(device) < 0) return kInvalidArgument;
    char uuid[fragtrace::vgpu::kUuidTextBytes];
    fragtrace::vgpu::uuid_text(index_of(device), uuid);
    return copy_text(uuid, out, size);
}

FT_EXPORT int nvmlDeviceGetName(void* device, char* out, unsigned size) {
    if (index_of(device) < 0) return kInvalidArgument;
    char name[96];
    fragtrace::vgpu::device_name(config(), name, int(sizeof name));
    return copy_text(name, out, size);
}

FT_EXPORT int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
    if (index_of(device) < 0 || memory == nullptr) return kInvalidArgument;
    const unsigned long long total = config().card.total_bytes;
    const unsigned long long used = used_bytes(index_of(device));
    *memory = {total, used < total ? total - used : 0, used};
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* memory) {
    Memory plain{};
    if (memory == nullptr) return kInvalidArgument;
    if (const int error = nvmlDeviceGetMemoryInfo(device, &plain)) return error;
    memory->total = plain.total;
    memory->reserved = 0;
    memory->free = plain.free;
    memory->used = plain.used;
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
    if (index_of(device) < 0 || major == nullptr || minor == nullptr) return kInvalidArgument;
    *major = config().card.compute_major;
    *minor = config().card.compute_minor;
    return kSuccess;
}

// If the cards are not shared, this process is missing: NVML does not know its memory use then, and
// PyTorch reports that itself.
FT_EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* list) {
    if (index_of(device) < 0 || count == nullptr) return kInvalidArgument;
    ProcessList found{static_cast<Process*>(list), list != nullptr ? *count : 0, 0, 0};
    find_processes(index_of(device), &found);
    const unsigned room = *count;
    *count = found.count;
    if (found.count > room) return kInsufficientSize;
    return found.count > 0 && list == nullptr ? kInvalidArgument : kSuccess;
}

FT_EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, void*) {
    if (index_of(device) < 0 || count == nullptr) return kInvalidArgument;
    *count = 0;
    return kSuccess;
}

// The first version has smaller entries. It returns an empty list.
FT_EXPORT int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* list) {
    return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, list);
}

FT_EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
    if (index_of(device) < 0 || current == nullptr || pending == nullptr) return kInvalidArgument;
    *current = *pending = 0;
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, void*) {
    return kNotSupported;
}

FT_EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) {
    return kNotSupported;
}

FT_EXPORT int nvmlDeviceGetNvLinkState(void*, unsigned, void*) {
    return kNotSupported;
}

FT_EXPORT int nvmlDeviceGetNvLinkCapability(void*, unsigned, int, unsigned*) {
    return kNotSupported;
}

// Frameworks compute the bandwidth of copies to the host from these. Assumption: PCIe 4.0 x16.
FT_EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void* device, unsigned* generation) {
    if (index_of(device) < 0 || generation == nullptr) return kInvalidArgument;
    *generation = 4;
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void* device, unsigned* lanes) {
    if (index_of(device) < 0 || lanes == nullptr) return kInvalidArgument;
    *lanes = 16;
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
    return nvmlDeviceGetCurrPcieLinkGeneration(device, generation);
}

FT_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* lanes) {
    return nvmlDeviceGetCurrPcieLinkWidth(device, lanes);
}

// The structure begins with its version. Zero in all other fields means "no fabric".
FT_EXPORT int nvmlDeviceGetGpuFabricInfoV(void* device, unsigned* info) {
    constexpr int kFieldsOfVersion2 = 8;
    if (index_of(device) < 0 || info == nullptr) return kInvalidArgument;
    memset(info + 1, 0, sizeof(unsigned) * kFieldsOfVersion2);
    return kSuccess;
}

FT_EXPORT int nvmlDeviceGetP2PStatus(void*, void*, int, int*) {
    return kNotSupported;
}

}  // extern "C"
