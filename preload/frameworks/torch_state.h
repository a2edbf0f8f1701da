// Shared by the files of the PyTorch adaptor: the state of the calling thread and of the process.
#pragma once

#include "recorder/recorder.h"
#include "system/loaded_objects.h"

#include <link.h>
#include <stdint.h>

namespace fragtrace::preload {

// What an allocate call leaves for the report that follows on the same thread, further down.
struct TorchRequest {
    const volatile uint64_t* cookie = nullptr;  // in the wrapper's frame; nullptr = not inside
    uint64_t requested_bytes = kUnknown64;
    uint64_t stream = kStreamUnknown;
    bool for_current_stream = false;  // of the device that the report names
    Stacks stacks;
};

struct SettingBack;  // torch_rewind.cpp

inline constexpr uint32_t kMaxPendingEvents = 32;  // of one free: streams that used the block

struct PendingOn {
    uint64_t event;  // as EventRecord::extra of kPendingEvent
    uint64_t stream;
};

// What every report reads lies in the first two cache lines.
struct alignas(64) TorchThread {
    TorchRequest request;
    uint64_t driver_free_bytes = kUnknown64;  // as asked for within this request
    uint32_t routed_pool = 0;                 // that the allocator chose for this request
    uint32_t pending_count = 0;
    SettingBack* setting_back = nullptr;          // the pool that this thread sets back
    uint64_t stream[2] = {};                      // a stream as c10 names it, not all zeros,
    uint64_t stream_handle = 0;                   // and the driver's handle of it
    const volatile uint64_t* emptying = nullptr;  // as TorchRequest::cookie, of empty_cache
    PendingOn pending[kMaxPendingEvents];
};

extern constinit thread_local TorchThread t_torch __attribute__((tls_model("initial-exec")));

inline TorchThread& torch_thread() {
    return t_torch;
}

// What the cookie in a live frame holds, and a left one most likely not.
inline uint64_t cookie_value(const volatile uint64_t* place) {
    return reinterpret_cast<uintptr_t>(place) ^ 0x7d5c1f0a94b3e268ull;
}

// True if the frame that holds a cookie is one of this thread's callers: an exception leaves a
// wrapper without a word, and its frame is then below ours, or overwritten.
inline bool frame_lives(const volatile uint64_t* cookie) {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    return reinterpret_cast<uintptr_t>(cookie) > here &&  // stacks grow down
           *cookie == cookie_value(cookie);
}

// The request of the allocate call that is running on this thread, nullptr if none is.
TorchRequest* current_request();

// The request of this thread fails by a rule of the allocator's own, without a report.
void torch_note_rejection();

// The stream that the request asks for, kStreamUnknown if unknown.
uint64_t stream_of_request(const TorchRequest& request, uint16_t device);
// The calling thread's current stream, kStreamUnknown if unknown.
uint64_t current_stream(uint16_t device);

enum TorchPatch : uint32_t { kUntried, kPatching, kNative, kNotNative };

// Of the process; what every report reads lies together.
struct alignas(64) TorchProcess {
    const link_map* cuda;  // libc10_cuda, once it has been seen
    AddressRange cuda_range;
    uint32_t patch;  // TorchPatch: of the allocator object
    uint32_t had_first_block;
    // 0: no block yet that belongs to a private pool, or that more streams than the default one
    // use, and no routing. Then reports need not look for any of them.
    uint32_t special_blocks;
};

extern constinit TorchProcess g_torch;

inline bool torch_has_special_blocks() {
    return __atomic_load_n(&g_torch.special_blocks, __ATOMIC_ACQUIRE) != 0;
}

// Before the first one is noted anywhere.
inline void torch_note_special_block() {
    if (!torch_has_special_blocks()) {
        __atomic_store_n(&g_torch.special_blocks, 1, __ATOMIC_RELEASE);
    }
}

// As in EventRecord::device, of a c10::DeviceIndex: -1 means "the current one".
inline uint16_t torch_device(int index) {
    const auto ordinal = static_cast<int8_t>(index);
    return ordinal < 0 ? kDeviceUnknown : static_cast<uint16_t>(ordinal);
}

// True where blocks come from PyTorch's own pool (backend "native").
inline bool torch_is_native() {
    return __atomic_load_n(&g_torch.patch, __ATOMIC_ACQUIRE) == kNative;
}

// False where every request goes to the device: caching was switched off.
bool torch_caches();
// A private pool gets its segments from a pluggable allocator: an address of its object, or of a
// shared_ptr to it (or nullptr).
void torch_note_pool_allocator(uint32_t pool, void* allocator);
// Another allocator has been put in its place.
void torch_allocator_changed();
// Finds the allocator object and replaces its table of virtual functions, once.
void torch_patch_now();

inline void torch_patch_allocator() {
    if (__atomic_load_n(&g_torch.patch, __ATOMIC_ACQUIRE) == kUntried) [[unlikely]] {
        torch_patch_now();
    }
}

// Versions and settings, as they are now; writes again only what changed.
void record_torch_version();
// "2.15.0" of "2.15.0+cu132", "" if unknown.
const char* torch_release();

// The pending events of the block that is being freed on this thread.
inline void forget_pending_events() {
    torch_thread().pending_count = 0;
}

uint32_t take_pending_events(uint64_t block, uint16_t device);

}  // namespace fragtrace::preload
