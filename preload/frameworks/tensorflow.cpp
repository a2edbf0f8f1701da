// TensorFlow's allocator: each tsl::BFCAllocator for a GPU is recorded as a pool of the program.
//
// libtensorflow_framework exports the allocator's functions, and calls them through the loader's
// scope, even from the table of virtual functions and from each other. So the functions of
// hooks.def are called instead. AddTraceMe reports each block to TensorFlow's profiler, under the
// allocator's mutex, with the sizes that were requested and allocated. The events are therefore in
// the order of the allocator, with several threads, too.
//
// A release may be built otherwise. The first allocator is checked: its table must have our
// function. And each allocated block must have been reported, with plausible values. Otherwise
// nothing more is recorded, and the fact "tensorflow.pool" has the reason.
#include "frameworks/allocator_pools.h"
#include "hooks/framework.h"
#include "hooks/hook_call.h"
#include "hooks/resolve.h"
#include "recorder/program_pools.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/loaded_objects.h"
#include "system/sys.h"

#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr char kLibrary[] = "libtensorflow_framework.so";
constexpr char kAllocated[] = "MemoryAllocation";
constexpr char kFreed[] = "MemoryDeallocation";
constexpr uint64_t kQuantumBytes = 256;  // sizes and addresses of chunks are multiples

enum State : uint32_t { kUnchecked, kOn, kOff };

uint32_t g_state;
uint32_t g_noted;      // 1: the library was looked at
AddressRange g_range;  // of the library with the checked allocator

AllocatorPools g_pools;

// The block that AddTraceMe reported last on this thread.
constinit thread_local const void* t_reported __attribute__((tls_model("initial-exec"))) = nullptr;

void switch_off(const char* reason) {
    char text[160];
    __atomic_store_n(&g_state, kOff, __ATOMIC_RELEASE);
    record_fact("tensorflow.pool", Text(text, sizeof text).add("off: ").add(reason).c_str());
    g_pools.end_all();
}

void store_range(const AddressRange& range) {
    __atomic_store_n(&g_range.end, range.end, __ATOMIC_RELAXED);
    __atomic_store_n(&g_range.begin, range.begin, __ATOMIC_RELEASE);
}

// One address for all call sites in the library.
const void* canonical(const void* caller) {
    const uintptr_t begin = load_acquire(&g_range.begin);
    const auto place = reinterpret_cast<uintptr_t>(caller);
    return begin != 0 && place >= begin && place < load_relaxed(&g_range.end)
               ? reinterpret_cast<const void*>(begin)
               : caller;
}

// Whether the allocator of this object calls our functions: its table of virtual functions has
// them.
bool table_is_ours(const link_map* object) {
    constexpr char kTable[] = "_ZTVN3tsl12BFCAllocatorE";
    bool indirect = false;
    void** table = static_cast<void**>(defined_symbol(object, kTable, &indirect));
    const size_t words = defined_symbol_bytes(object, kTable) / sizeof(void*);
    const void* ours =
        hook_info(Hook::k__ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE)
            .wrapper;
    for (size_t word = 0; table != nullptr && word < words; ++word) {
        if (table[word] == ours) {
            return true;
        }
    }
    return false;
}

bool is_checked(const void* constructor) {
    const uint32_t state = load_acquire(&g_state);
    if (state != kUnchecked) {
        return state == kOn;
    }
    const link_map* object = object_at(constructor);
    bool indirect = false;
    if (object == nullptr ||
        defined_symbol(object,
                       "_ZN3tsl12BFCAllocator10AddTraceMeESt17basic_string_viewIcSt11char_"
                       "traitsIcEEPKvll",
                       &indirect) == nullptr) {
        switch_off("the allocator of this release does not report its blocks");
        return false;
    }
    if (!table_is_ours(object)) {
        switch_off("the allocator of this build does not call its functions by name");
        return false;
    }
    const AddressRange range = object_range(object);
    store_range(range);
    // A look-up takes the loader's lock, which must not happen under the allocator's mutex.
    const auto* caller = reinterpret_cast<const void*>(range.begin);
    (void)resolve(
        Hook::k__ZN3tsl12BFCAllocator10AddTraceMeESt17basic_string_viewIcSt11char_traitsIcEEPKvll,
        caller);
    __atomic_store_n(&g_state, kOn, __ATOMIC_RELEASE);
    record_fact("tensorflow.pool", "recorded");
    return true;
}

// As much of BFCAllocator::Options as is used; its layout is the same in all releases that have the
// constructor of hooks.def.
struct Setup {
    bool allow_growth;
    bool allow_retry_on_failure;
    bool garbage_collection;
    double fragmentation_fraction;
};

// Settings of the simulated pool of the same kind (docs/pools.md, bfc). The limit is a fact of its
// own.
void record_settings(uint32_t pool, const Setup& setup) {
    char text[128];
    Text settings(text, sizeof text);
    settings.add(setup.allow_growth ? "preallocate:0" : "preallocate:1");
    settings.add(setup.garbage_collection ? ",garbage_collection:True" : "");
    const double fraction = setup.fragmentation_fraction;
    if (fraction > 0 && fraction < 1) {
        constexpr uint64_t kParts = 1000000;
        const auto parts = (static_cast<uint64_t>(fraction * (2 * kParts)) + 1) / 2;  // rounded
        settings.add(",fragmentation_fraction:0.");
        for (uint64_t digit = kParts / 10; digit != 0; digit /= 10) {
            settings.add_number(parts / digit % 10);
        }
    }
    set_program_pool_settings(pool, settings.c_str());
}

bool has(const char* text, size_t size, const char* word) {
    return memmem(text, size, word, strlen(word)) != nullptr;
}

// A std::string begins with the address of its characters and their number.
struct String {
    const char* text;
    size_t size;
};

void begin(const void* self, size_t limit_bytes, const String& name, const Setup& setup) {
    // Allocators for the memory of the CPU have this kind, too.
    const bool of_gpu = has(name.text, name.size, "GPU") || has(name.text, name.size, "gpu");
    if (!recording_enabled() || !of_gpu || has(name.text, name.size, "cpu")) {
        return;
    }
    char copy[128];
    const size_t kept = name.size < sizeof copy - 1 ? name.size : sizeof copy - 1;
    memcpy(copy, name.text, kept);
    copy[kept] = '\0';
    (void)g_pools.find_or_create(self, [&] {
        const uint32_t pool = create_program_pool(copy, "bfc");
        if (pool != 0) {
            set_program_pool_limit(pool, limit_bytes);
            record_settings(pool, setup);
        }
        return pool;
    });
}

uint32_t pool_of(const void* self) {
    return load_acquire(&g_state) == kOn ? g_pools.find(self) : 0;
}

bool is(const char* name, size_t bytes, const char* expected) {
    return bytes == strlen(expected) && memcmp(name, expected, bytes) == 0;
}

void report(const void* self,
            size_t name_bytes,
            const char* name,
            const void* address,
            int64_t requested_bytes,
            int64_t size_bytes) {
    const uint32_t pool = pool_of(self);
    if (pool == 0) {
        return;
    }
    const auto place = reinterpret_cast<uint64_t>(address);
    const bool plausible = place != 0 && place % kQuantumBytes == 0 && requested_bytes >= 0 &&
                           size_bytes >= requested_bytes &&
                           static_cast<uint64_t>(size_bytes) % kQuantumBytes == 0;
    // The length is compared first: a name that is not one of the two is never read.
    if (plausible && is(name, name_bytes, kAllocated)) {
        t_reported = address;
        record_program_block(pool,
                             place,
                             static_cast<uint64_t>(requested_bytes),
                             static_cast<uint64_t>(size_bytes),
                             kStreamUnknown);
    } else if (plausible && is(name, name_bytes, kFreed)) {
        record_program_free(pool, place);
    } else {
        switch_off("the allocator reports something else than blocks");
    }
}

void requested(const void* self, size_t bytes, const void* result) {
    const uint32_t pool = pool_of(self);
    if (pool == 0 || bytes == 0) {
        return;
    }
    if (result == nullptr) {
        record_program_failure(pool, bytes, kStreamUnknown);
    } else if (t_reported != result) {
        switch_off("the allocator allocated a block that it did not report");
    }
}

}  // namespace

void tensorflow_note_object(const link_map* object) {
    if (load_relaxed(&g_noted) != 0 ||
        strncmp(base_name(object), kLibrary, sizeof kLibrary - 1) != 0 ||
        __atomic_exchange_n(&g_noted, 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    bool indirect = false;
    if (defined_symbol(object,
                       "_ZN3tsl12BFCAllocatorC2ESt10unique_ptrINS_12SubAllocatorESt14default_"
                       "deleteIS2_EEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS0_"
                       "7OptionsE",
                       &indirect) == nullptr) {
        record_fact("tensorflow.pool", "off: the allocator of this release has another interface");
    }
}

}  // namespace fragtrace::preload

using namespace fragtrace::preload;

extern "C" {

#define FT_CONSTRUCTOR(name)                                                                  \
    FT_PUBLIC void name(                                                                      \
        void* self, void* below, size_t limit_bytes, const void* text, const void* options) { \
        auto* call = real<Hook::k_##name>(canonical(__builtin_return_address(0)));            \
        if (call == nullptr) {                                                                \
            return;                                                                           \
        }                                                                                     \
        call(self, below, limit_bytes, text, options);                                        \
        if (is_checked(reinterpret_cast<const void*>(call))) {                                \
            begin(self,                                                                       \
                  limit_bytes,                                                                \
                  *static_cast<const String*>(text),                                          \
                  *static_cast<const Setup*>(options));                                       \
        }                                                                                     \
    }
FT_CONSTRUCTOR(
    _ZN3tsl12BFCAllocatorC1ESt10unique_ptrINS_12SubAllocatorESt14default_deleteIS2_EEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS0_7OptionsE)
FT_CONSTRUCTOR(
    _ZN3tsl12BFCAllocatorC2ESt10unique_ptrINS_12SubAllocatorESt14default_deleteIS2_EEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS0_7OptionsE)

#define FT_DESTRUCTOR(name)                                                        \
    FT_PUBLIC void name(void* self) {                                              \
        auto* call = real<Hook::k_##name>(canonical(__builtin_return_address(0))); \
        g_pools.end(self);                                                         \
        if (call != nullptr) {                                                     \
            call(self);                                                            \
        }                                                                          \
    }
FT_DESTRUCTOR(_ZN3tsl12BFCAllocatorD1Ev)
FT_DESTRUCTOR(_ZN3tsl12BFCAllocatorD2Ev)

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): TensorFlow's names
FT_PUBLIC void* _ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE(
    void* self, size_t alignment, size_t bytes, const void* attributes) {
    auto* call = real<Hook::k__ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE>(
        canonical(__builtin_return_address(0)));
    if (call == nullptr) {
        return nullptr;
    }
    void* result = call(self, alignment, bytes, attributes);
    requested(self, bytes, result);
    return result;
}

FT_PUBLIC void _ZN3tsl12BFCAllocator10AddTraceMeESt17basic_string_viewIcSt11char_traitsIcEEPKvll(
    void* self,
    size_t name_bytes,
    const char* name,
    const void* address,
    int64_t requested_bytes,
    int64_t size_bytes) {
    auto* call = real<
        Hook::k__ZN3tsl12BFCAllocator10AddTraceMeESt17basic_string_viewIcSt11char_traitsIcEEPKvll>(
        canonical(__builtin_return_address(0)));
    report(self, name_bytes, name, address, requested_bytes, size_bytes);
    if (call != nullptr) {
        call(self, name_bytes, name, address, requested_bytes, size_bytes);
    }
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"
