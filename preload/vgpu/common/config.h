// The settings in FRAGTRACE_VIRTUAL_GPU and the other variables of the virtual GPU, parsed once, at
// first use. FRAGTRACE_VIRTUAL_GPU_CARDS is the name of the cards without shared=NAME. Thread safe.
// Each stand-in library carries its own copy, so the libraries share nothing but the environment.
#pragma once

#include <cstdint>

namespace fragtrace::vgpu {

// A card: one row of cards.def, or a size alone.
struct Card {
    char name[48];
    uint64_t total_bytes;
    uint64_t context_bytes;
    int multiprocessors;
    int compute_major;
    int compute_minor;
    int clock_khz;
    int memory_clock_khz;
    int memory_bus_bits;
    int l2_cache_bytes;
    int ecc;
};

constexpr int kMaxDevices = 64;
constexpr uint64_t kMaxCardBytes = uint64_t{1} << 40;
// More devices share the same range of addresses, so each has less of it.
constexpr int kDevicesWithWideSpace = 8;
constexpr uint64_t kMostBytesInNarrowSpace = uint64_t{192} << 30;

constexpr int kCardsBytes = 33;

struct Config {
    enum Status { kUnset, kValid, kInvalid };

    Status status;
    char problem[512];                // kInvalid: one line that says what is wrong
    int device_count;                 // after CUDA_VISIBLE_DEVICES is applied
    int physical_index[kMaxDevices];  // one per visible ordinal
    Card card;
    uint64_t nccl_bytes;  // device memory that NCCL takes per communicator
    bool nccl_model;      // or as libraries/nccl_buffers.h models it
    // Processes with the same name here share their cards. Empty: this process shares with nobody.
    char cards[kCardsBytes];
    bool alone;  // shared=off
    bool debug;
};

const Config& config();

// The parser behind config(), separate for tests. `text` may be null (unset).
Config parse_config(const char* text, const char* visible_devices);

// Name and UUID of a device. They do not change between runs and are the same in the driver, the
// runtime and NVML.
void device_name(const Config& config, char* out, int out_bytes);
void device_uuid(int physical_index, unsigned char out[16]);
constexpr int kUuidTextBytes = 48;
void uuid_text(int physical_index, char out[kUuidTextBytes]);  // "GPU-..."

// The other variables of the virtual GPU. An empty value counts as unset. A bad value of one of
// them makes config() invalid.
struct Variable {
    const char* name;
    bool (*accepts)(const char* value);
    const char* allowed;  // after "give"
    const char* description;
};

constexpr int kVariableCount = 5;
extern const Variable kVariables[kVariableCount];

// FRAGTRACE_VIRTUAL_GPU_HOST: 0 to 63. Processes on one machine can stand for several hosts.
int virtual_host();

// FRAGTRACE_VIRTUAL_GPU_NCCL_LIMIT: how long a rank waits for others, 1 to 86,399 s.
unsigned nccl_limit_s();

constexpr int kMostSimulatedProcesses = 16;

// Reads the next PID:BYTES of FRAGTRACE_VIRTUAL_GPU_PROCESSES. `*text` then points to the one after
// it, or to the end. False at the end, or if the text is something else.
bool next_simulated_process(const char** text, unsigned* process, unsigned long long* bytes);

constexpr int pci_bus_of(int physical_index) {
    return 0x10 + physical_index;
}

}  // namespace fragtrace::vgpu
