// The allocator object: its virtual functions are replaced in a copy of their table, so that the
// program's requests are seen before the allocator rounds them.
//
// Slot 2, allocate(size_t), exists in every release; it is replaced if the object is the native
// allocator. Other slots move between releases; they are replaced if torch_slots.h finds them.
//
// The wrappers run outside the allocator's mutex, so stacks are captured there.
#include "frameworks/torch_captures.h"
#include "frameworks/torch_deferred.h"
#include "frameworks/torch_labels.h"
#include "frameworks/torch_pools.h"
#include "frameworks/torch_settings.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "hooks/resolve.h"
#include "recorder/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

// On every ABI, a class with a destructor is returned in memory that the caller provides. Its size
// does not matter to a function that only passes it on.
struct OpaqueDataPtr {
    void* words[6];
    OpaqueDataPtr(const OpaqueDataPtr&) = delete;
    OpaqueDataPtr& operator=(const OpaqueDataPtr&) = delete;
    ~OpaqueDataPtr();
};

struct OpaqueStream {  // c10::cuda::CUDAStream
    uint64_t words[2];
};

using Allocate = OpaqueDataPtr(void* self, size_t bytes);
using RawAllocate = void*(void* self, size_t bytes);
using RawAllocateWithStream = void*(void* self, size_t bytes, void* stream);

constexpr int kAllocateSlot = 2;
constexpr size_t kAbsurdBytes = size_t{1} << 60;  // allocate() rejects such sizes before anything
                                                  // else

constexpr int kMaxSlots = 256;
constexpr int kTableHead = 2;  // offset to top, type information

struct Originals {
    Allocate* allocate;
    RawAllocate* raw_alloc;
    RawAllocateWithStream* raw_alloc_with_stream;
    OpaqueStream (*current_stream)(int8_t device);
    void* (*stream_handle)(const OpaqueStream*);
};

Originals g_original;
void* g_table[kTableHead + kMaxSlots];

// ---- wrappers -----------------------------------------------------------------------------------

// Publishes the request during a call. If an exception passes, the destructor does not run. Then
// current_request() finds the frame gone, and the report of the failure clears the request.
class RequestScope {
  public:
    RequestScope(uint64_t bytes, uint64_t stream, bool for_current_stream)
        : outer_(torch_thread().request) {
        TorchRequest& request = torch_thread().request;
        request.cookie = nullptr;  // so that not even a signal handler sees a half-written request
        request.requested_bytes = bytes;
        request.stream = stream;
        request.for_current_stream = for_current_stream;
        request.stacks = capture_stacks();
        torch_thread().driver_free_bytes = kUnknown64;
        torch_thread().routed_pool = 0;
        cookie_ = cookie_value(&cookie_);
        request.cookie = &cookie_;
    }

    ~RequestScope() {
        cookie_ = 0;
        torch_thread().request = outer_;
    }

    RequestScope(const RequestScope&) = delete;
    RequestScope& operator=(const RequestScope&) = delete;

  private:
    TorchRequest outer_;
    volatile uint64_t cookie_ = 0;
};

OpaqueDataPtr allocate(void* self, size_t bytes) {
    if (bytes == 0 || (running_session() == nullptr && !recording_enabled())) {
        return g_original.allocate(self, bytes);
    }
    const RequestScope scope(bytes, kStreamUnknown, true);
    if (bytes >= kAbsurdBytes) [[unlikely]] {
        torch_note_rejection();
    }
    return g_original.allocate(self, bytes);
}

void* raw_alloc(void* self, size_t bytes) {
    if (bytes == 0 || (running_session() == nullptr && !recording_enabled())) {
        return g_original.raw_alloc(self, bytes);
    }
    const RequestScope scope(bytes, kStreamUnknown, true);
    return g_original.raw_alloc(self, bytes);
}

void* raw_alloc_with_stream(void* self, size_t bytes, void* stream) {
    if (bytes == 0 || (running_session() == nullptr && !recording_enabled())) {
        return g_original.raw_alloc_with_stream(self, bytes, stream);
    }
    const RequestScope scope(bytes, reinterpret_cast<uint64_t>(stream), false);
    return g_original.raw_alloc_with_stream(self, bytes, stream);
}

// ---- patching -----------------------------------------------------------------------------------

void* of_cuda(const char* name) {
    bool indirect = false;
    return defined_symbol(g_torch.cuda, name, &indirect);
}

// Finds `std::atomic<CUDAAllocator*> allocator`. A C++ program may contain a copy of the variable
// that replaces the library's, so the program's scope is searched first. Before 2.0, there is a
// function instead of the variable (and the only class is Allocator, so slot 2 is the only useful
// one).
void* find_allocator() {
    constexpr char kName[] = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
    void** variable = static_cast<void**>(real_dlsym(RTLD_DEFAULT, kName));
    if (variable == nullptr) {
        variable = static_cast<void**>(of_cuda(kName));
        (void)dlerror();
    }
    if (variable != nullptr) {
        return __atomic_load_n(variable, __ATOMIC_ACQUIRE);
    }
    auto* get = reinterpret_cast<void* (*)()>(of_cuda("_ZN3c104cuda20CUDACachingAllocator3getEv"));
    return get == nullptr ? nullptr : get();
}

int count_slots(void* const* slots) {
    int count = 0;
    while (count < kMaxSlots && slots[count] != nullptr && is_code(slots[count])) {
        ++count;
    }
    return count;
}

TorchPatch patch(void* allocator) {
    auto** table_pointer = static_cast<void***>(allocator);
    void** slots = *table_pointer;
    if (slots == nullptr) {
        return kUntried;  // not constructed yet
    }
    if (slots == g_table + kTableHead) {
        return kNative;  // it was installed in its own place: our functions must not call
                         // themselves
    }
    if (!record_backend(allocator)) {
        return kNotNative;
    }
    const int slot_count = count_slots(slots);
    if (slot_count <= kAllocateSlot) {
        return kNotNative;
    }
    g_original.current_stream =
        reinterpret_cast<OpaqueStream (*)(int8_t)>(of_cuda("_ZN3c104cuda20getCurrentCUDAStreamEa"));
    g_original.stream_handle = reinterpret_cast<void* (*)(const OpaqueStream*)>(
        of_cuda("_ZNK3c104cuda10CUDAStream6streamEv"));
    memcpy(
        g_table, slots - kTableHead, sizeof(void*) * static_cast<size_t>(kTableHead + slot_count));
    void** table = g_table + kTableHead;
    replace_slot(table, kAllocateSlot, &g_original.allocate, &allocate);
    PoolSlots layout;
    const bool known = find_pool_slots(slots, slot_count, &layout);
    if (known) {
        replace_slot(table, layout.raw_alloc, &g_original.raw_alloc, &raw_alloc);
        replace_slot(table,
                     layout.raw_alloc_with_stream,
                     &g_original.raw_alloc_with_stream,
                     &raw_alloc_with_stream);
        watch_pools(table, layout);
        watch_captures(table, layout);
        watch_settings(table, layout);
        watch_stream_uses(table, layout);
        watch_labels(table, layout);
    }
    if (!known) {
        record_fact("torch.pools", "unknown: the pool's functions could not be told apart");
    }
    record_fact("torch.vtable", known ? "verified" : "unverified");
    __atomic_store_n(table_pointer, table, __ATOMIC_RELEASE);
    return kNative;
}

}  // namespace

// Called by the report instead of before the request. By then the allocator has read the current
// stream, and the report knows the device, so the driver need not be asked for it.
uint64_t stream_of_request(const TorchRequest& request, uint16_t device) {
    return request.for_current_stream ? current_stream(device) : request.stream;
}

uint64_t current_stream(uint16_t device) {
    if (g_original.current_stream == nullptr || g_original.stream_handle == nullptr) {
        return kStreamUnknown;
    }
    const OpaqueStream stream = g_original.current_stream(static_cast<int8_t>(device));
    // The handle of a stream never changes. Unused bytes of c10's identifier may differ.
    TorchThread& thread = torch_thread();
    if (thread.stream[0] != stream.words[0] || thread.stream[1] != stream.words[1]) {
        thread.stream_handle = reinterpret_cast<uint64_t>(g_original.stream_handle(&stream));
        thread.stream[0] = stream.words[0];
        thread.stream[1] = stream.words[1];
    }
    return thread.stream_handle;
}

void torch_allocator_changed() {
    __atomic_store_n(&g_torch.patch, kUntried, __ATOMIC_RELEASE);
    torch_patch_allocator();
}

__attribute__((noinline, cold)) void torch_patch_now() {
    uint32_t state = kUntried;
    if (g_torch.cuda == nullptr || !recording_enabled() ||
        !__atomic_compare_exchange_n(
            &g_torch.patch, &state, kPatching, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return;
    }
    const int saved_errno = errno;
    void* allocator = find_allocator();
    TorchPatch result = kUntried;
    if (allocator != nullptr) {
        record_torch_version();
        result = patch(allocator);
    }
    errno = saved_errno;
    __atomic_store_n(&g_torch.patch, result, __ATOMIC_RELEASE);
}

}  // namespace fragtrace::preload
