// The lock, the devices and the objects that handles refer to. Objects are placed in order from a
// fixed address, so handles are the same in every run, as device addresses are.
#include "driver/state.h"

#include "driver/card_shares.h"

#include <initializer_list>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

namespace fragtrace::vgpu {

Device g_devices[kMaxDevices];
uint64_t g_next_id = 1;

namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

constexpr size_t kSlotBytes = 64;
constexpr size_t kArenaBytes = size_t{1} << 30;
constexpr int kClasses = 8;  // classes of 64 bytes; no object exceeds 8 * 64 bytes
char* g_arena;
size_t g_arena_used;
void* g_free_slots[kClasses];

size_t class_of(size_t bytes) {
    return (bytes + kSlotBytes - 1) / kSlotBytes;
}

bool open_arena() {
    if (g_arena != nullptr) return true;
    for (void* wanted : {reinterpret_cast<void*>(kHandleBase), static_cast<void*>(nullptr)}) {
        void* got = mmap(wanted,
                         kArenaBytes,
                         PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                             (wanted != nullptr ? MAP_FIXED_NOREPLACE : 0),
                         -1,
                         0);
        if (got != MAP_FAILED) {
            g_arena = static_cast<char*>(got);
            return true;
        }
    }
    return false;
}

// Without this, a child of fork could inherit a lock whose holder does not exist in the child.
void lock_for_fork() {
    pthread_mutex_lock(&g_mutex);
}

void unlock_after_fork() {
    pthread_mutex_unlock(&g_mutex);
}

// A child of fork owns nothing on the cards. It has copies of its parent's allocations.
void begin_in_child() {
    for (Device& device : g_devices) {
        device.inherited_bytes = device.used_bytes;
    }
    forget_shares();
    unlock_after_fork();
}

// What this process itself has taken.
uint64_t own_bytes(const Device& device) {
    return device.used_bytes > device.inherited_bytes ? device.used_bytes - device.inherited_bytes
                                                      : 0;
}

int card_of(const Device& device) {
    return config().physical_index[&device - g_devices];
}

}  // namespace

void watch_forks() {
    static bool watched;
    if (!watched) pthread_atfork(lock_for_fork, unlock_after_fork, begin_in_child);
    watched = true;
}

StateLock::StateLock() {
    pthread_mutex_lock(&g_mutex);
}

StateLock::~StateLock() {
    pthread_mutex_unlock(&g_mutex);
}

void* new_object(Kind kind, size_t bytes) {
    const size_t size_class = class_of(bytes);
    if (size_class > kClasses || !open_arena()) return nullptr;
    void* slot = g_free_slots[size_class - 1];
    if (slot != nullptr) {
        memcpy(&g_free_slots[size_class - 1], static_cast<char*>(slot) + 8, sizeof(void*));
    } else {
        if (g_arena_used + size_class * kSlotBytes > kArenaBytes) return nullptr;
        slot = g_arena + g_arena_used;
        g_arena_used += size_class * kSlotBytes;
    }
    memset(slot, 0, size_class * kSlotBytes);
    static_cast<Object*>(slot)->kind = kind;
    return slot;
}

void delete_object(void* object, size_t bytes) {
    const size_t size_class = class_of(bytes);
    static_cast<Object*>(object)->kind = Kind::kFree;
    memcpy(static_cast<char*>(object) + 8, &g_free_slots[size_class - 1], sizeof(void*));
    g_free_slots[size_class - 1] = object;
}

bool is_object(const void* handle, Kind kind) {
    const char* at = static_cast<const char*>(handle);
    if (g_arena == nullptr || at < g_arena || at >= g_arena + g_arena_used) return false;
    if (static_cast<size_t>(at - g_arena) % kSlotBytes != 0) return false;
    return static_cast<const Object*>(handle)->kind == kind;
}

void wait_a_moment() {
    constexpr timespec kMoment{0, 1};  // in practice about 50 us, because of the timer's slack
    nanosleep(&kMoment, nullptr);
}

uint64_t free_bytes(const Device& device) {
    const uint64_t used = own_bytes(device) + taken_by_others(card_of(device));
    return used < device.total_bytes ? device.total_bytes - used : 0;
}

bool take_bytes(Device& device, uint64_t bytes) {
    if (bytes > device.total_bytes) return false;
    device.used_bytes += bytes;
    if (set_share(card_of(device), own_bytes(device), device.total_bytes)) return true;
    device.used_bytes -= bytes;
    return false;
}

void give_bytes(Device& device, uint64_t bytes) {
    device.used_bytes -= bytes;
    (void)set_share(card_of(device), own_bytes(device), device.total_bytes);
}

bool find_memory(uint64_t address, MemoryInfo* info) {
    return find_device_memory(address, info) || find_mapped_memory(address, info) ||
           find_host_memory(address, info) || find_imported_memory(address, info) ||
           find_graph_memory(address, info);
}

CUresult free_memory(CUdeviceptr address) {
    if (address == 0) return CUDA_SUCCESS;
    if (address >= kManagedBase && address < kStaticsBase) return free_host_of(address);
    if (address >= kImportedBase && address < kGraphBase) return unmap_imported(address);
    if (address >= kGraphBase && address < kGraphBase + kGraphRegionBytes) {
        return free_graph_memory(address);
    }
    return free_device(address);
}

bool host_can_read(uint64_t address) {
    const bool device = address >= kDeviceBase && address < kManagedBase;
    const bool statics = address >= kStaticsBase && address < kStaticsBase + kRegionBytes;
    const bool reserved = address >= kReservedBase && address < kGraphBase + kGraphRegionBytes;
    return !device && !statics && !reserved;
}

}  // namespace fragtrace::vgpu
