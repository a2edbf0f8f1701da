// Shared by the files of the PyTorch adaptor: the state of the calling thread and of the process.
#pragma once

#include "objects.h"
#include "recorder.h"

#include <link.h>
#include <stdint.h>

namespace fragtrace::preload {

// What an allocate call leaves for the report that follows on the same thread, further down.
struct TorchRequest {
    const volatile uint64_t* cookie = nullptr;  // in the wrapper's frame; nullptr = not inside
    uint64_t requested_bytes = kUnknown64;
    uint64_t stream = kStreamUnknown;
    Stacks stacks;
};

inline constexpr uint32_t kMaxPendingEvents = 32;  // of one free: streams that used the block

struct TorchThread {
    TorchRequest request;
    uint64_t driver_free_bytes = kUnknown64;
    uint32_t pending_count = 0;

    struct {
        uint64_t event;
        uint64_t stream;
    } pending[kMaxPendingEvents];
};

TorchThread& torch_thread();

// What the cookie in a live frame holds, and a left one most likely not.
inline uint64_t cookie_value(const volatile uint64_t* place) {
    return reinterpret_cast<uintptr_t>(place) ^ 0x7d5c1f0a94b3e268ull;
}

// The request of the allocate call that is running on this thread, nullptr if none is. An
// exception leaves the wrapper without a word: its frame is then below ours, or overwritten.
TorchRequest* current_request();

struct TorchObjects {
    const link_map* cuda;  // libc10_cuda
    AddressRange cuda_range;
};

const TorchObjects& torch_objects();

// True where blocks come from PyTorch's own pool (backend "native").
bool torch_is_native();
// Finds the allocator object and replaces its table of virtual functions, once.
void torch_patch_allocator();
// Versions and settings, as they are now; writes again only what changed.
void record_torch_facts();
// "2.15.0" of "2.15.0+cu132", "" if unknown.
const char* torch_release();

// The pending events of the block that is being freed on this thread.
void forget_pending_events();
uint32_t take_pending_events(uint64_t block, uint16_t device);

}  // namespace fragtrace::preload
