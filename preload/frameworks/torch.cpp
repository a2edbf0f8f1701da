// PyTorch's report functions, and the per-thread data that connects reports with the calls around
// them.
//
// c10 reports every block that the native allocator allocates (bytes > 0) or frees (bytes < 0, at
// the request to free) and every failure, under the allocator's mutex. Reports of other kinds of
// devices are ignored.
#include "frameworks/torch_captures.h"
#include "frameworks/torch_deferred.h"
#include "frameworks/torch_pools.h"
#include "frameworks/torch_rewind.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "hooks/hook_call.h"
#include "recorder/labels.h"
#include "recorder/session.h"

#include <string.h>

namespace fragtrace::preload {

// This library is always loaded at start, so its thread-local memory can be in the static TLS
// block.
constinit thread_local TorchThread t_torch __attribute__((tls_model("initial-exec"))){};

constinit TorchProcess g_torch{};

namespace {

// c10::Device is two bytes: type, index. Index -1 means the current device.
constexpr uint8_t kDeviceTypeCuda = 1;

bool is_cuda(uint16_t device) {
    return (device & 0xff) == kDeviceTypeCuda;
}

uint16_t device_index(uint16_t device) {
    return torch_device(static_cast<int8_t>(device >> 8));
}

// An address that represents libc10_cuda as a caller, once it was seen.
const void* torch_caller(const void* otherwise) {
    const uintptr_t begin = __atomic_load_n(&g_torch.cuda_range.begin, __ATOMIC_ACQUIRE);
    return begin == 0 ? otherwise : reinterpret_cast<const void*>(begin);
}

uint8_t capture_flags(uint16_t device) {
    const bool in_capture = torch_has_special_blocks() && is_in_capture(device);
    return static_cast<uint8_t>(in_capture ? kFlagInCapture : 0);
}

void report_allocation(uint64_t address, uint64_t bytes, uint16_t device) {
    forget_pending_events();
    const bool special = torch_has_special_blocks();
    if (special) [[unlikely]] {
        complete_deferred_frees(device);
    }
    // The settings at the first block are the valid ones: a script may change them between its
    // first query of the devices and its first block.
    if (__atomic_load_n(&g_torch.had_first_block, __ATOMIC_RELAXED) == 0 &&
        __atomic_exchange_n(&g_torch.had_first_block, 1, __ATOMIC_RELAXED) == 0) [[unlikely]] {
        record_torch_version();
    }
    EventRecord event{};
    event.kind = EventKind::kBlockAlloc;
    event.device = device;
    event.address = address;
    event.size = kUnknown64;
    event.extra = bytes;
    event.stream = kStreamUnknown;
    Stacks stacks;
    TorchRequest* request = current_request();
    if (request != nullptr) [[likely]] {
        event.size = request->requested_bytes;
        event.stream = stream_of_request(*request, device);
        stacks = request->stacks;
        request->requested_bytes = kUnknown64;  // only one block per request
        request->stream = kStreamUnknown;
        request->for_current_stream = false;
    } else {
        stacks = capture_stacks();
    }
    const bool own_stream = event.stream != 0 && event.stream != kStreamUnknown;
    if (special || own_stream || t_torch.routed_pool != 0 || t_torch.setting_back != nullptr)
        [[unlikely]] {
        event.pool = pool_of_new_block(address, device, event.stream);
        note_block_stream(address, event.stream);
        event.flags = capture_flags(device);
        if (event.pool != 0 && event.flags != 0 && is_captured(event.stream)) {
            event.flags |= kFlagOfGraph;
            torch_note_graph_pool(event.pool);
        }
    }
    t_torch.driver_free_bytes = kUnknown64;
    if (setting_back(address, bytes)) {
        return;
    }
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    if (record(event) != 0) {
        label_new_block(address, device);
    }
}

void report_free(uint64_t address, uint64_t bytes, uint16_t device) {
    const bool special = torch_has_special_blocks();
    const uint32_t pool = special ? pool_of_freed_block(address) : 0;
    if (setting_back(address, 0)) {
        forget_pending_events();
        return;
    }
    if (special) [[unlikely]] {
        t_torch.pending_count +=
            defer_free(address, device, t_torch.pending_count != 0, t_torch.pending);
    }
    EventRecord event{};
    event.kind = EventKind::kBlockFree;
    event.device = device;
    event.address = address;
    event.extra = bytes;
    event.stream = kStreamUnknown;
    event.pool = pool;
    event.flags = t_torch.pending_count != 0 ? kFlagPending : 0;
    record(event);
    if (t_torch.pending_count != 0) [[unlikely]] {
        take_pending_events(address, device);
    }
}

void report_usage(void* address, int64_t bytes, uint16_t device) {
    if (!is_cuda(device) || (running_session() == nullptr && !recording_enabled())) {
        return;
    }
    torch_patch_allocator();
    const auto block = reinterpret_cast<uint64_t>(address);
    if (bytes > 0) {
        report_allocation(block, static_cast<uint64_t>(bytes), device_index(device));
    } else if (bytes < 0) {
        report_free(block, uint64_t{0} - static_cast<uint64_t>(bytes), device_index(device));
    }
}

// Records a request that ends with an out-of-memory exception.
void record_failure(uint64_t bytes, uint16_t device, uint8_t flags) {
    EventRecord event{};
    event.kind = EventKind::kBlockOutOfMemory;
    event.flags = flags | capture_flags(device);
    event.device = device;
    event.size = bytes;
    event.extra = t_torch.driver_free_bytes;
    event.stream = kStreamUnknown;
    const Stacks stacks = torch_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    TorchRequest* request = current_request();
    if (request != nullptr) {
        if (request->requested_bytes != kUnknown64) {
            event.size = request->requested_bytes;
        }
        event.stream = stream_of_request(*request, event.device);
        t_torch.request = TorchRequest{};  // an exception follows
    }
    event.pool = pool_of_request(event.device, event.stream);
    t_torch.routed_pool = 0;
    t_torch.driver_free_bytes = kUnknown64;
    record(event);
}

void report_out_of_memory(int64_t bytes, uint16_t device) {
    forget_pending_events();
    if (!is_cuda(device) || !recording_enabled()) {
        return;
    }
    torch_patch_allocator();
    complete_deferred_frees(device_index(device));
    record_failure(static_cast<uint64_t>(bytes), device_index(device), 0);
}

// Returns the calling thread's device.
uint16_t current_device() {
    int device = -1;
    auto* get = real<Hook::k_cudaGetDevice>(torch_caller(nullptr));
    return get != nullptr && get(&device) == kSuccess ? torch_device(device) : kDeviceUnknown;
}

// libc10_cuda creates an exception with this text for a request that it has not reported as failed:
// throw_on_cudamalloc_oom rejects the request.
void report_error(const void* caller, const char* text) {
    constexpr char kOutOfMemory[] = "CUDA out of memory";
    if (torch_owns(caller) && text != nullptr &&
        strncmp(text, kOutOfMemory, sizeof kOutOfMemory - 1) == 0) {
        const SlowPath slow_path;
        torch_note_rejection();
    }
}

}  // namespace

void torch_note_rejection() {
    const TorchRequest* request = current_request();
    if (request != nullptr && request->requested_bytes != kUnknown64 && recording_enabled()) {
        forget_pending_events();
        const uint16_t device = current_device();
        complete_deferred_frees(device);
        record_failure(request->requested_bytes, device, kFlagRejected);
    }
}

TorchRequest* current_request() {
    TorchRequest& request = t_torch.request;
    return frame_lives(request.cookie) ? &request : nullptr;
}

void torch_note_object(const link_map* object) {
    if (__atomic_load_n(&g_torch.cuda, __ATOMIC_ACQUIRE) != nullptr ||
        strcmp(base_name(object), "libc10_cuda.so") != 0) {
        return;
    }
    const AddressRange range = object_range(object);
    __atomic_store_n(&g_torch.cuda_range.end, range.end, __ATOMIC_RELAXED);
    __atomic_store_n(&g_torch.cuda_range.begin, range.begin, __ATOMIC_RELEASE);
    __atomic_store_n(&g_torch.cuda, object, __ATOMIC_RELEASE);
}

bool torch_owns(const void* address) {
    return g_torch.cuda_range.contains(address);
}

const void* torch_canonical_caller(const void* caller) {
    return torch_owns(caller) ? reinterpret_cast<const void*>(g_torch.cuda_range.begin) : caller;
}

bool torch_is_allocating(const void* caller) {
    return torch_caches() && (torch_owns(caller) || current_request() != nullptr);
}

uint8_t torch_device_flags(const void* caller, EventKind kind) {
    if (torch_is_allocating(caller)) {
        return kFlagFromAllocator;
    }
    const bool asks = kind == EventKind::kDeviceAlloc || kind == EventKind::kAllocRefused;
    return static_cast<uint8_t>(asks && torch_owns(caller) ? kFlagPastPool : 0);
}

Stacks torch_stacks() {
    const TorchRequest* request = current_request();
    return request != nullptr ? request->stacks : capture_stacks();
}

void torch_note_free_memory(uint64_t free_bytes) {
    t_torch.driver_free_bytes = free_bytes;
}

void torch_prepare() {
    static int prepared = 0;
    if (__atomic_load_n(&g_torch.cuda, __ATOMIC_ACQUIRE) == nullptr) {
        return;
    }
    if (__atomic_exchange_n(&prepared, 1, __ATOMIC_RELAXED) == 0) {
        const auto* caller = reinterpret_cast<const void*>(g_torch.cuda_range.begin);
        for (int hook = 0; hook < static_cast<int>(Hook::kCount); ++hook) {
            (void)resolve(static_cast<Hook>(hook), caller);
        }
    }
    torch_patch_allocator();
}

}  // namespace fragtrace::preload

using namespace fragtrace;
using namespace fragtrace::preload;

extern "C" {

#define FT_REPORT_USAGE(name, Count)                                                      \
    FT_PUBLIC void name(                                                                  \
        void* address, int64_t bytes, Count allocated, Count reserved, uint16_t device) { \
        auto* call = real<Hook::k_##name>(__builtin_return_address(0));                   \
        report_usage(address, bytes, device);                                             \
        if (call != nullptr) {                                                            \
            call(address, bytes, allocated, reserved, device);                            \
        }                                                                                 \
    }
FT_REPORT_USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, uint64_t)
FT_REPORT_USAGE(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, int64_t)

#define FT_REPORT_OUT_OF_MEMORY(name, Count)                                               \
    FT_PUBLIC void name(int64_t bytes, Count allocated, Count reserved, uint16_t device) { \
        auto* call = real<Hook::k_##name>(__builtin_return_address(0));                    \
        report_out_of_memory(bytes, device);                                               \
        if (call != nullptr) {                                                             \
            call(bytes, allocated, reserved, device);                                      \
        }                                                                                  \
    }
FT_REPORT_OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, uint64_t)
FT_REPORT_OUT_OF_MEMORY(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, int64_t)

// Constructors of c10's exceptions, which every library calls from many places. There is only one
// libc10, and the function that libc10_cuda calls is known. A std::string begins with the address
// of its characters.
#define FT_ERROR(name)                                                      \
    FT_PUBLIC void name(void* self, CodeLocation where, const void* text) { \
        const void* caller = __builtin_return_address(0);                   \
        auto* call = real<Hook::k_##name>(torch_caller(caller));            \
        report_error(caller, *static_cast<const char* const*>(text));       \
        if (call != nullptr) {                                              \
            call(self, where, text);                                        \
        }                                                                   \
    }
FT_ERROR(
    _ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)
FT_ERROR(_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)

}  // extern "C"
