#include "hooks/cuda_facts.h"

#include "hooks/hook_call.h"
#include "hooks/nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr char kVirtualName[] = "fragtrace virtual GPU";

constexpr uint16_t kMaxDevices = 64;
constexpr int kComputeCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kComputeCapabilityMinor = 76;
// Refused allocations closer together than this are one burst. The interval doubles after every
// kBurstsPerDoubling bursts: a program may have refused allocations for weeks, and the room for
// facts is limited.
constexpr uint64_t kBurst_ns = 1000000000;
constexpr unsigned kBurstsPerDoubling = 8;
constexpr unsigned kMostDoublings = 20;

int g_recorded_pid;
uint8_t g_context_known[kMaxDevices];
uint64_t g_asked_ns;  // time of the last query of NVML
unsigned g_bursts;

void record_number(const char* key, unsigned long long value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", value);
    record_fact(key, text);
}

void record_text(int device, const char* what, const char* value) {
    char key[64];
    snprintf(key, sizeof key, "device.%d.%s", device, what);
    record_fact(key, value);
}

void record_identity(int device, const void* caller) {
    char text[41];
    unsigned char uuid[16];
    auto* get_uuid = real<Hook::k_cuDeviceGetUuid_v2>(caller);
    if (get_uuid == nullptr) {  // before CUDA 11.4
        get_uuid = real<Hook::k_cuDeviceGetUuid>(caller);
    }
    if (get_uuid != nullptr && get_uuid(uuid, device) == kSuccess) {
        format_uuid("GPU", uuid, text);
        record_text(device, "uuid", text);
    }
    auto* get_bus = real<Hook::k_cuDeviceGetPCIBusId>(caller);
    if (get_bus != nullptr && get_bus(text, sizeof text, device) == kSuccess) {
        text[sizeof text - 1] = '\0';
        record_text(device, "pci_bus_id", text);
    }
    int major = 0;
    int minor = 0;
    auto* attribute = real<Hook::k_cuDeviceGetAttribute>(caller);
    if (attribute != nullptr && attribute(&major, kComputeCapabilityMajor, device) == kSuccess &&
        attribute(&minor, kComputeCapabilityMinor, device) == kSuccess) {
        snprintf(text, sizeof text, "%d.%d", major, minor);
        record_text(device, "compute_capability", text);
    }
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
    record_identity(device, caller);
}

const char* last_part(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash != nullptr && slash[1] != '\0' ? slash + 1 : path;
}

// Writes the name of a process's program to `text`: "python serve.py", "python -m server",
// "simulation". Further arguments are left out, since they can be private. Returns false if there
// is no such process.
bool name_program(uint32_t pid, char* text, size_t room) {
    char path[32];
    char words[512];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    const long size = read_file(path, words, sizeof words - 1);
    if (size <= 0) {
        return false;
    }
    words[size] = '\0';
    size_t length = static_cast<size_t>(snprintf(text, room, "%.40s", last_part(words)));
    const char* end = words + size;
    const char* word = words + strlen(words) + 1;
    if (word < end && strcmp(word, "-m") == 0) {
        length += static_cast<size_t>(snprintf(text + length, room - length, " -m"));
        word += strlen(word) + 1;
    }
    if (word < end && word[0] != '-') {
        snprintf(text + length, room - length, " %.40s", last_part(word));
    }
    for (char* byte = text; *byte != '\0'; ++byte) {
        if (static_cast<unsigned char>(*byte) < ' ' || *byte == '\x7f') {
            *byte = '?';
        }
    }
    return true;
}

constexpr int kMostPrograms = 16;
constexpr size_t kNameBytes = 96;  // two words of at most 40 bytes, and " -m "
constexpr size_t kProgramsBytes = kMostPrograms * (kNameBytes + 12);

// Records the programs of other processes, one line each: "PID PROGRAM". `text` has kProgramsBytes.
void record_programs(
    int device, unsigned burst, const NvmlProcess* processes, int count, char* text) {
    size_t length = 0;
    const auto self = static_cast<uint32_t>(getpid());
    for (int i = 0; i < count && i < kMostPrograms; ++i) {
        char name[kNameBytes];
        if (processes[i].pid != self && name_program(processes[i].pid, name, sizeof name)) {
            length += static_cast<size_t>(snprintf(text + length,
                                                   kProgramsBytes - length,
                                                   "%s%u %s",
                                                   length == 0 ? "" : "\n",
                                                   processes[i].pid,
                                                   name));
        }
    }
    if (length != 0) {
        char what[40];
        snprintf(what, sizeof what, "processes.%u.programs", burst);
        record_text(device, what, text);
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

void record_context_device(uint16_t device, const void* caller) {
    static uint8_t recorded[kMaxDevices];
    if (device < kMaxDevices && __atomic_exchange_n(&recorded[device], 1, __ATOMIC_RELAXED) == 0) {
        record_device(device, caller);
    }
}

void record_context_fact(uint16_t device, uint64_t bytes, const char* how) {
    if (device >= kMaxDevices ||
        __atomic_exchange_n(&g_context_known[device], 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    char key[64];
    snprintf(key, sizeof key, "device.%u.context_bytes", unsigned{device});
    record_number(key, bytes);
    record_text(device, "context_bytes.measured", how);
}

void record_mig_fact(uint16_t device, const void* caller) {
    static uint8_t asked[kMaxDevices];
    if (device >= kMaxDevices || __atomic_exchange_n(&asked[device], 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    const int mode = nvml_mig_mode(device, caller);
    if (mode >= 0) {
        record_text(device, "mig", mode != 0 ? "1" : "0");
    }
}

void record_context_bytes(uint16_t device, uint64_t free_bytes, const void* caller) {
    size_t total_bytes = 0;
    auto* get_total = real<Hook::k_cuDeviceTotalMem_v2>(caller);
    if (device < kMaxDevices && __atomic_load_n(&g_context_known[device], __ATOMIC_RELAXED) == 0 &&
        get_total != nullptr && get_total(&total_bytes, device) == kSuccess) {
        record_context_fact(device,
                            total_bytes > free_bytes ? total_bytes - free_bytes : 0,
                            "total less free after the first allocation: other processes and that "
                            "allocation are in it");
    }
}

void record_other_processes(uint16_t device, uint64_t sequence, const void* caller) {
    const uint64_t now = now_ns();
    uint64_t asked = __atomic_load_n(&g_asked_ns, __ATOMIC_RELAXED);
    const unsigned doublings = __atomic_load_n(&g_bursts, __ATOMIC_RELAXED) / kBurstsPerDoubling;
    const uint64_t burst_ns = kBurst_ns
                              << (doublings < kMostDoublings ? doublings : kMostDoublings);
    if (device == kDeviceUnknown || (asked != 0 && now - asked < burst_ns) ||
        !__atomic_compare_exchange_n(
            &g_asked_ns, &asked, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        return;
    }
    constexpr int kMostNamed = 64;
    // If no allocation ever succeeds, the devices are not known yet. Memory that is refused shows
    // that the driver is initialised.
    record_cuda_facts(caller);
    record_mig_fact(device, caller);
    NvmlProcess processes[kMostNamed];
    NvmlMemory memory{};
    int total = 0;
    const int count = nvml_processes(device, caller, processes, kMostNamed, &total);
    if (count < 0 || !nvml_memory(device, caller, &memory)) {
        return;
    }
    char text[64 + kMostNamed * 34];
    size_t length = static_cast<size_t>(snprintf(text,
                                                 sizeof text,
                                                 "event %llu used %llu free %llu self %d",
                                                 static_cast<unsigned long long>(sequence),
                                                 static_cast<unsigned long long>(memory.used_bytes),
                                                 static_cast<unsigned long long>(memory.free_bytes),
                                                 getpid()));
    for (int i = 0; i < count && length < sizeof text; ++i) {
        const char* format = processes[i].used_bytes == kUnknown64 ? ", %u unknown" : ", %u %llu";
        length +=
            static_cast<size_t>(snprintf(text + length,
                                         sizeof text - length,
                                         format,
                                         processes[i].pid,
                                         static_cast<unsigned long long>(processes[i].used_bytes)));
    }
    if (total > count && length < sizeof text) {
        snprintf(text + length, sizeof text - length, ", and %d more", total - count);
    }
    char what[32];
    const unsigned burst = __atomic_add_fetch(&g_bursts, 1, __ATOMIC_RELAXED);
    snprintf(what, sizeof what, "processes.%u", burst);
    record_text(device, what, text);
    // Without this process in the list, its ids are those of the host or of another container.
    for (int i = 0; i < count; ++i) {
        if (processes[i].pid == static_cast<uint32_t>(getpid())) {
            static_assert(sizeof text >= kProgramsBytes);
            record_programs(device, burst, processes, count, text);
            return;
        }
    }
}

}  // namespace fragtrace::preload
