// Shared by the files of the PyTorch adaptor: data of the calling thread and of the process.
#pragma once

#include "recorder/recorder.h"
#include "system/loaded_objects.h"

#include <link.h>
#include <stdint.h>

namespace fragtrace::preload {

// Data that an allocate call leaves for the report that follows deeper in the same call.
struct TorchRequest {
    const volatile uint64_t* cookie = nullptr;  // in the wrapper's frame; nullptr = no such call
    uint64_t requested_bytes = kUnknown64;
    uint64_t stream = kStreamUnknown;
    bool for_current_stream = false;  // the current stream of the device in the report
    Stacks stacks;
};

struct SettingBack;  // torch_rewind.cpp

inline constexpr uint32_t kMaxPendingEvents = 32;  // of one free: maximum number of streams

struct PendingOn {
    uint64_t event;  // as EventRecord::extra of kPendingEvent
    uint64_t stream;
};

// Fields that every report reads are in the first two cache lines.
struct alignas(64) TorchThread {
    TorchRequest request;
    uint64_t driver_free_bytes = kUnknown64;  // reported during this request
    uint32_t routed_pool = 0;                 // the allocator chose it for this request
    uint32_t pending_count = 0;
    SettingBack* setting_back = nullptr;          // the restore that this thread is executing
    uint64_t stream[2] = {};                      // a stream as c10 identifies it, not all zeros,
    uint64_t stream_handle = 0;                   // and its handle in the driver
    const volatile uint64_t* emptying = nullptr;  // like TorchRequest::cookie, for empty_cache
    PendingOn pending[kMaxPendingEvents];
};

extern constinit thread_local TorchThread t_torch __attribute__((tls_model("initial-exec")));

inline TorchThread& torch_thread() {
    return t_torch;
}

// The value of the cookie in a live frame. An overwritten cookie most likely has another value.
inline uint64_t cookie_value(const volatile uint64_t* place) {
    return reinterpret_cast<uintptr_t>(place) ^ 0x7d5c1f0a94b3e268ull;
}

// Returns true if the frame with the cookie is one of this thread's callers. An exception can leave
// a wrapper without any notice; its frame is then below ours, or overwritten.
inline bool frame_lives(const volatile uint64_t* cookie) {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return reinterpret_cast<uintptr_t>(cookie) > here &&  // stacks grow down
           *cookie == cookie_value(cookie);
}

// Returns the request of the allocate call that is running on this thread, nullptr if none is.
TorchRequest* current_request();

// Notes that a rule of the allocator rejects this thread's request, without a report.
void torch_note_rejection();

// Returns the stream of the request, kStreamUnknown if unknown.
uint64_t stream_of_request(const TorchRequest& request, uint16_t device);
// Returns the calling thread's current stream, kStreamUnknown if unknown.
uint64_t current_stream(uint16_t device);

enum TorchPatch : uint32_t { kUntried, kPatching, kNative, kNotNative };

// Data of the process. Fields that every report reads are next to each other.
struct alignas(64) TorchProcess {
    const link_map* cuda;  // libc10_cuda, once it was seen
    AddressRange cuda_range;
    uint32_t patch;  // TorchPatch: state of the allocator object
    uint32_t had_first_block;
    // 0: no block belongs to a private pool or is used by more streams than its own, and nothing is
    // routed. Then reports need no look-ups for these.
    uint32_t special_blocks;
};

extern constinit TorchProcess g_torch;

inline bool torch_has_special_blocks() {
    return __atomic_load_n(&g_torch.special_blocks, __ATOMIC_ACQUIRE) != 0;
}

// Must be called before the first such block is noted anywhere.
inline void torch_note_special_block() {
    if (!torch_has_special_blocks()) {
        __atomic_store_n(&g_torch.special_blocks, 1, __ATOMIC_RELEASE);
    }
}

// Converts a c10::DeviceIndex to EventRecord::device; -1 means the current device.
inline uint16_t torch_device(int index) {
    const auto ordinal = static_cast<int8_t>(index);
    return ordinal < 0 ? kDeviceUnknown : static_cast<uint16_t>(ordinal);
}

// True if blocks come from PyTorch's own allocator (backend "native").
inline bool torch_is_native() {
    return __atomic_load_n(&g_torch.patch, __ATOMIC_ACQUIRE) == kNative;
}

// False if caching is disabled, so that every request goes to the device.
bool torch_caches();
// Notes that a private pool gets its segments from a pluggable allocator. `allocator` is the
// address of that object or of a shared_ptr to it, or nullptr.
void torch_note_pool_allocator(uint32_t pool, void* allocator);
// Called when another allocator has replaced the current one.
void torch_allocator_changed();
// Finds the allocator object and replaces its table of virtual functions, once.
void torch_patch_now();

inline void torch_patch_allocator() {
    if (__atomic_load_n(&g_torch.patch, __ATOMIC_ACQUIRE) == kUntried) [[unlikely]] {
        torch_patch_now();
    }
}

// Records the current versions and settings; writes again only what changed.
void record_torch_version();
// Returns for example "2.15.0" for "2.15.0+cu132", "" if unknown.
const char* torch_release();
// Whether the release is older than 2.`minor`; false if it is unknown.
bool torch_is_before(int minor);

// Discards the pending events of the block that this thread is freeing.
inline void forget_pending_events() {
    torch_thread().pending_count = 0;
}

uint32_t take_pending_events(uint64_t block, uint16_t device);

}  // namespace fragtrace::preload
