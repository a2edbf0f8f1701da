// The pool's allocator object: its virtual functions are replaced in a copy of their table, so
// that the program's own requests are seen before the pool rounds them.
//
// Slot 2, allocate(size_t), has been there in every release; it is replaced wherever the object
// is the native pool. Other slots move between releases: they are replaced only for releases in
// the table below, and only if this process's library passes the self-check.
//
// The wrappers run outside the pool's mutex, so stacks are taken there.
#include "frameworks/torch.h"
#include "frameworks/torch_state.h"
#include "resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

// A class with a destructor is returned through memory that the caller provides, on every ABI; its
// size does not matter to a function that only passes it on.
struct OpaqueDataPtr {
    void* words[6];
    OpaqueDataPtr(const OpaqueDataPtr&) = delete;
    OpaqueDataPtr& operator=(const OpaqueDataPtr&) = delete;
    ~OpaqueDataPtr();
};

// std::string of libstdc++'s current ABI, for the one call of name().
struct OpaqueString {
    const char* data;
    uint64_t size;
    char rest[16];
    OpaqueString(const OpaqueString&) = delete;
    OpaqueString& operator=(const OpaqueString&) = delete;

    ~OpaqueString() {}  // the text of a short name lies inside
};

struct OpaqueStream {  // c10::cuda::CUDAStream
    uint64_t words[2];
};

using Allocate = OpaqueDataPtr(void* self, size_t bytes);
using RawAllocate = void*(void* self, size_t bytes);
using RawAllocateWithStream = void*(void* self, size_t bytes, void* stream);
using EmptyCache = void(void* self, uint64_t pool_first, uint64_t pool_second);
using SetMemoryFraction = void(void* self, double fraction, int8_t device);
using Name = OpaqueString(void* self);

// ---- which slot is what -------------------------------------------------------------------------

constexpr int kAllocateSlot = 2;

// Counted in c10/core/Allocator.h, c10/core/CachingDeviceAllocator.h and
// c10/cuda/CUDACachingAllocator.h of the release: two slots for the destructor, then the virtual
// functions in order of declaration, base classes first.
struct SlotLayout {
    const char* release;
    int allocator_slots;  // of c10::Allocator
    int device_slots;     // of c10::DeviceAllocator
    int total_slots;      // of c10::cuda::CUDACachingAllocator::CUDAAllocator
    int is_simple_data_ptr;
    int empty_cache;
    int raw_alloc;
    int raw_alloc_with_stream;
    int set_memory_fraction;
    int name;
};

constexpr SlotLayout kLayouts[] = {
    {"2.15.0", 6, 13, 57, 3, 7, 13, 14, 18, 56},
};

constexpr int kMaxSlots = 256;
constexpr int kTableHead = 2;  // offset to top, type information

struct Originals {
    Allocate* allocate;
    RawAllocate* raw_alloc;
    RawAllocateWithStream* raw_alloc_with_stream;
    EmptyCache* empty_cache;
    SetMemoryFraction* set_memory_fraction;
    OpaqueStream (*current_stream)(int8_t device);
    void* (*stream_handle)(const OpaqueStream*);
};

Originals g_original;
void* g_table[kTableHead + kMaxSlots];

enum PatchState : int { kUntried, kPatching, kNative, kNotNative };

int g_state = kUntried;

// ---- wrappers -----------------------------------------------------------------------------------

uint64_t current_stream() {
    if (g_original.current_stream == nullptr || g_original.stream_handle == nullptr) {
        return kStreamUnknown;
    }
    const OpaqueStream stream = g_original.current_stream(-1);
    return reinterpret_cast<uint64_t>(g_original.stream_handle(&stream));
}

// Publishes the request for the length of a call. If an exception passes, the destructor does not
// run; current_request() then finds the frame gone, and the report of the failure clears it.
class RequestScope {
  public:
    RequestScope(uint64_t bytes, uint64_t stream) : outer_(torch_thread().request) {
        TorchRequest& request = torch_thread().request;
        request.cookie = nullptr;  // nothing half-written is ever seen, by a signal handler neither
        request.requested_bytes = bytes;
        request.stream = stream;
        request.stacks = capture_stacks();
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
    if (bytes == 0 || !recording_enabled()) {
        return g_original.allocate(self, bytes);
    }
    const RequestScope scope(bytes, current_stream());
    return g_original.allocate(self, bytes);
}

void* raw_alloc(void* self, size_t bytes) {
    if (bytes == 0 || !recording_enabled()) {
        return g_original.raw_alloc(self, bytes);
    }
    const RequestScope scope(bytes, current_stream());
    return g_original.raw_alloc(self, bytes);
}

void* raw_alloc_with_stream(void* self, size_t bytes, void* stream) {
    if (bytes == 0 || !recording_enabled()) {
        return g_original.raw_alloc_with_stream(self, bytes, stream);
    }
    const RequestScope scope(bytes, reinterpret_cast<uint64_t>(stream));
    return g_original.raw_alloc_with_stream(self, bytes, stream);
}

void record_setting(EventKind kind, uint64_t size, uint16_t device) {
    if (!recording_enabled()) {
        return;
    }
    EventRecord event{};
    event.kind = kind;
    event.device = device;
    event.size = size;
    event.stream = kStreamUnknown;
    const Stacks stacks = capture_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    record(event);
}

void empty_cache(void* self, uint64_t pool_first, uint64_t pool_second) {
    if (pool_first == 0 && pool_second == 0) {  // of one private pool: its frees speak for it
        record_setting(EventKind::kEmptyCache, 0, kDeviceUnknown);
    }
    g_original.empty_cache(self, pool_first, pool_second);
}

void set_memory_fraction(void* self, double fraction, int8_t device) {
    uint64_t bits = 0;
    memcpy(&bits, &fraction, sizeof bits);
    record_setting(EventKind::kMemoryFraction,
                   bits,
                   device < 0 ? kDeviceUnknown : static_cast<uint16_t>(device));
    g_original.set_memory_fraction(self, fraction, device);
}

// ---- the self-check -----------------------------------------------------------------------------

const SlotLayout* layout_of_release(const char* release) {
    for (const SlotLayout& layout : kLayouts) {
        if (strcmp(layout.release, release) == 0) {
            return &layout;
        }
    }
    return nullptr;
}

void* defined(const link_map* object, const char* name) {
    bool indirect = false;
    return object == nullptr ? nullptr : defined_symbol(object, name, &indirect);
}

// The library must agree with the layout at every point that can be seen from outside: the sizes
// of the base classes' tables, a slot that still holds a base class's own function, the number of
// slots up to the table's end, and what the last one answers.
bool matches(const SlotLayout& layout, void* allocator, void* const* slots, int slot_count) {
    const link_map* core = find_object("libc10.so");
    if (core == nullptr) {
        return false;
    }
    const auto table_bytes = [](int count) {
        return sizeof(void*) * static_cast<size_t>(kTableHead + count);
    };
    if (defined_symbol_bytes(core, "_ZTVN3c109AllocatorE") != table_bytes(layout.allocator_slots) ||
        defined_symbol_bytes(core, "_ZTVN3c1015DeviceAllocatorE") !=
            table_bytes(layout.device_slots)) {
        return false;
    }
    if (slots[layout.is_simple_data_ptr] !=
        defined(core, "_ZNK3c109Allocator18is_simple_data_ptrERKNS_7DataPtrE")) {
        return false;
    }
    if (slot_count != layout.total_slots) {
        return false;
    }
    const OpaqueString name = reinterpret_cast<Name*>(slots[layout.name])(allocator);
    return name.size == strlen("native") && memcmp(name.data, "native", name.size) == 0;
}

// ---- patching -----------------------------------------------------------------------------------

// `std::atomic<CUDAAllocator*> allocator`. A C++ program may hold a copy of the variable that
// takes the place of the library's, so the program's scope is asked first.
void* find_allocator() {
    constexpr char kName[] = "_ZN3c104cuda20CUDACachingAllocator9allocatorE";
    void** variable = static_cast<void**>(real_dlsym(RTLD_DEFAULT, kName));
    if (variable == nullptr) {
        variable = static_cast<void**>(defined(torch_objects().cuda, kName));
        (void)dlerror();
    }
    return variable == nullptr ? nullptr : __atomic_load_n(variable, __ATOMIC_ACQUIRE);
}

// The mangled class name by the table's type information: its second word is the name.
const char* class_name(void* const* slots) {
    const auto* type = static_cast<const char* const*>(slots[-1]);
    return type == nullptr ? "" : type[1];
}

int count_slots(void* const* slots) {
    int count = 0;
    while (count < kMaxSlots && slots[count] != nullptr && is_code(slots[count])) {
        ++count;
    }
    return count;
}

template <typename Function>
void replace(int slot, Function** original, Function* wrapper) {
    *original = reinterpret_cast<Function*>(g_table[kTableHead + slot]);
    g_table[kTableHead + slot] = reinterpret_cast<void*>(wrapper);
}

PatchState patch(void* allocator) {
    auto** table_pointer = static_cast<void***>(allocator);
    void** slots = *table_pointer;
    if (slots == nullptr) {
        return kUntried;  // not constructed yet
    }
    if (strstr(class_name(slots), "NativeCachingAllocator") == nullptr) {
        const bool async = strstr(class_name(slots), "CudaMallocAsync") != nullptr;
        record_fact("allocator_backend", async ? "cudaMallocAsync" : class_name(slots));
        return kNotNative;
    }
    record_fact("allocator_backend", "native");
    const int slot_count = count_slots(slots);
    if (slot_count <= kAllocateSlot) {
        return kNotNative;
    }
    const link_map* cuda = torch_objects().cuda;
    g_original.current_stream = reinterpret_cast<OpaqueStream (*)(int8_t)>(
        defined(cuda, "_ZN3c104cuda20getCurrentCUDAStreamEa"));
    g_original.stream_handle = reinterpret_cast<void* (*)(const OpaqueStream*)>(
        defined(cuda, "_ZNK3c104cuda10CUDAStream6streamEv"));
    memcpy(
        g_table, slots - kTableHead, sizeof(void*) * static_cast<size_t>(kTableHead + slot_count));
    replace(kAllocateSlot, &g_original.allocate, &allocate);
    const SlotLayout* layout = layout_of_release(torch_release());
    const bool verified = layout != nullptr && matches(*layout, allocator, slots, slot_count);
    if (verified) {
        replace(layout->empty_cache, &g_original.empty_cache, &empty_cache);
        replace(layout->raw_alloc, &g_original.raw_alloc, &raw_alloc);
        replace(layout->raw_alloc_with_stream,
                &g_original.raw_alloc_with_stream,
                &raw_alloc_with_stream);
        replace(layout->set_memory_fraction, &g_original.set_memory_fraction, &set_memory_fraction);
    }
    record_fact("torch.vtable", verified ? "verified" : "unverified");
    __atomic_store_n(table_pointer, g_table + kTableHead, __ATOMIC_RELEASE);
    return kNative;
}

}  // namespace

bool torch_is_native() {
    return __atomic_load_n(&g_state, __ATOMIC_ACQUIRE) == kNative;
}

void torch_patch_allocator() {
    int state = __atomic_load_n(&g_state, __ATOMIC_ACQUIRE);
    if (state != kUntried) [[likely]] {
        return;
    }
    if (torch_objects().cuda == nullptr || !recording_enabled() ||
        !__atomic_compare_exchange_n(
            &g_state, &state, kPatching, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return;
    }
    const int saved_errno = errno;
    void* allocator = find_allocator();
    PatchState result = kUntried;
    if (allocator != nullptr) {
        record_torch_facts();
        result = patch(allocator);
    }
    errno = saved_errno;
    __atomic_store_n(&g_state, result, __ATOMIC_RELEASE);
}

}  // namespace fragtrace::preload
