#include "frameworks/torch_settings.h"

#include "frameworks/torch_captures.h"
#include "frameworks/torch_deferred.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "hooks/hook_call.h"
#include "recorder/numbered_names.h"
#include "system/sys.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

using EmptyCache = void(void* self, uint64_t pool_first, uint64_t pool_second);
using SetMemoryFraction = void(void* self, double fraction, int device);
using Enable = void(void* self, bool value);

struct Originals {
    EmptyCache* empty_cache;
    SetMemoryFraction* set_memory_fraction;
    Enable* enable;
};

Originals g_original;
int g_caching_off;

void record_setting(
    EventKind kind, uint64_t size, uint16_t device, uint32_t pool, uint8_t flags = 0) {
    if (!recording_enabled()) {
        return;
    }
    EventRecord event{};
    event.kind = kind;
    event.flags = flags;
    event.device = device;
    event.size = size;
    event.stream = kStreamUnknown;
    event.pool = pool;
    const Stacks stacks = capture_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    record(event);
}

void record_empty_cache(uint32_t pool) {
    const bool in_capture = torch_is_native() && is_in_capture(kDeviceUnknown);
    record_setting(EventKind::kEmptyCache,
                   0,
                   kDeviceUnknown,
                   pool,
                   static_cast<uint8_t>(in_capture ? kFlagInCapture : 0));
}

// CUDA events that the allocator records during empty_cache belong to deferred frees.
void call_empty_cache(void* self, uint64_t word, uint64_t other_word) {
    volatile uint64_t cookie = cookie_value(&cookie);
    torch_thread().emptying = &cookie;
    g_original.empty_cache(self, word, other_word);
    torch_thread().emptying = nullptr;
}

// Empties the caches of all devices, one after the other: those of the default pool and of private
// pools without users, or that of one private pool. The two words are the pool's id. In releases
// without that parameter, they are arbitrary register contents.
void empty_cache_of_pool(void* self, uint64_t pool_first, uint64_t pool_second) {
    const uint32_t pool = pool_number(PoolOwner::kPytorch, pool_first, pool_second);
    record_empty_cache(pool);
    call_empty_cache(self, pool_first, pool_second);
    if (pool == 0) {
        complete_deferred_frees(kDeviceUnknown);
    }
}

void empty_cache(void* self, uint64_t word, uint64_t other_word) {
    record_empty_cache(0);
    call_empty_cache(self, word, other_word);
    complete_deferred_frees(kDeviceUnknown);
}

void record_fraction(double fraction, int device) {
    uint64_t bits = 0;
    memcpy(&bits, &fraction, sizeof bits);
    record_setting(EventKind::kMemoryFraction, bits, torch_device(device), 0);
}

void set_memory_fraction(void* self, double fraction, int device) {
    record_fraction(fraction, device);
    g_original.set_memory_fraction(self, fraction, device);
}

void note_caching(bool on, const char* how) {
    __atomic_store_n(&g_caching_off, on ? 0 : 1, __ATOMIC_RELAXED);
    record_fact("torch.caching", how);
}

// PyTorch reads the variable once per process. Until 2.6, every value means yes, even "0"; later
// only "1" does.
bool switched_off_by_environment() {
    const char* value = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    if (value == nullptr) {
        return false;
    }
    return torch_is_before(7) || strcmp(value, "1") == 0;
}

void enable(void* self, bool value) {
    g_original.enable(self, value);
    if (!switched_off_by_environment()) {  // the environment's setting is final
        note_caching(value, value ? "on again, at run time" : "off, at run time");
    }
}

// Returns the mangled class name: the second word of the virtual table's type information.
const char* class_name(const void* object) {
    void* const* slots = *static_cast<void* const* const*>(object);
    const auto* type = static_cast<const char* const*>(slots[-1]);
    return type == nullptr ? "" : type[1];
}

// Writes "pluggable FILE FUNCTION", as far as the allocating function is known. The first member of
// the class is a std::function. If that contains a plain function, its first word is the address.
void name_pluggable(const void* allocator, Text* text) {
    text->add("pluggable");
    const void* function = static_cast<void* const*>(allocator)[1];
    Dl_info info;
    if (function == nullptr || object_at(function) == nullptr || !is_code(function) ||
        dladdr(function, &info) == 0) {
        return;
    }
    const char* slash = strrchr(info.dli_fname, '/');
    text->add(" ").add(slash == nullptr ? info.dli_fname : slash + 1);
    if (info.dli_sname != nullptr) {
        text->add(" ").add(info.dli_sname);
    }
}

}  // namespace

bool record_backend(void* allocator) {
    const char* name = class_name(allocator);
    if (strstr(name, "NativeCachingAllocator") != nullptr ||
        strstr(name, "CudaCachingAllocator") != nullptr) {  // up to 1.13
        record_fact("allocator_backend", "native");
        if (switched_off_by_environment()) {
            note_caching(false, "off");
        }
        return true;
    }
    char value[512];
    Text text(value, sizeof value);
    if (strstr(name, "CudaMallocAsync") != nullptr) {
        text.add("cudaMallocAsync");
    } else if (strstr(name, "CUDAPluggableAllocator") != nullptr) {
        name_pluggable(allocator, &text);
    } else {
        text.add(name);
    }
    record_fact("allocator_backend", text.c_str());
    return false;
}

bool torch_caches() {
    return __atomic_load_n(&g_caching_off, __ATOMIC_RELAXED) == 0;
}

void torch_note_pool_allocator(uint32_t pool, void* allocator) {
    // Until 2.10 the parameter is the object, whose virtual table is in a library. Later it is a
    // shared_ptr to the object.
    void** words = static_cast<void**>(allocator);
    if (words == nullptr || words[0] == nullptr || pool == kNumberOfTheRest) {
        return;
    }
    const void* object = object_at(words[0]) != nullptr ? allocator : words[0];
    char key[64];
    char value[512];
    Text text(value, sizeof value);
    if (strstr(class_name(object), "CUDAPluggableAllocator") != nullptr) {
        name_pluggable(object, &text);
    } else {
        text.add(class_name(object));
    }
    record_fact(Text(key, sizeof key).add("pool.").add_number(pool).add(".allocator").c_str(),
                text.c_str());
}

void watch_settings(void** slots, const PoolSlots& layout) {
    replace_slot(slots,
                 layout.empty_cache,
                 &g_original.empty_cache,
                 layout.empty_cache_has_pool ? &empty_cache_of_pool : &empty_cache);
    replace_slot(
        slots, layout.set_memory_fraction, &g_original.set_memory_fraction, &set_memory_fraction);
    replace_slot(slots, layout.enable, &g_original.enable, &enable);
}

// The settings as text. A std::string of either ABI begins with the address of its characters.
static void settings_changed(const void* string) {
    if (g_torch.cuda != nullptr && torch_is_native()) {
        record_setting(EventKind::kSettings,
                       text_number(*static_cast<const char* const*>(string)),
                       kDeviceUnknown,
                       0);
    }
}

}  // namespace fragtrace::preload

using namespace fragtrace;
using namespace fragtrace::preload;

extern "C" {

// Settings that PyTorch rejects end the call by an exception and are not recorded. The first two
// functions are used until 2.9, the third one since then. The third one also parses the
// environment's settings, before the allocator exists.
#define FT_SETTINGS(name, parameters, settings, ...)                    \
    FT_PUBLIC void name parameters {                                    \
        auto* call = real<Hook::k_##name>(__builtin_return_address(0)); \
        if (call != nullptr) {                                          \
            call(__VA_ARGS__);                                          \
            settings_changed(settings);                                 \
        }                                                               \
    }
FT_SETTINGS(_ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKSs,
            (const void* settings),
            settings,
            settings)
FT_SETTINGS(
    _ZN3c104cuda20CUDACachingAllocator20setAllocatorSettingsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE,
    (const void* settings),
    settings,
    settings)
FT_SETTINGS(
    _ZN3c1016CachingAllocator26AcceleratorAllocatorConfig9parseArgsERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE,
    (void* self, const void* settings),
    settings,
    self,
    settings)

// Until 1.13, these were separate functions.
FT_PUBLIC void _ZN3c104cuda20CUDACachingAllocator10emptyCacheEv() {
    auto* call =
        real<Hook::k__ZN3c104cuda20CUDACachingAllocator10emptyCacheEv>(__builtin_return_address(0));
    if (call != nullptr) {
        record_empty_cache(0);
        call();
    }
}

FT_PUBLIC void _ZN3c104cuda20CUDACachingAllocator17setMemoryFractionEdi(double fraction,
                                                                        int device) {
    auto* call = real<Hook::k__ZN3c104cuda20CUDACachingAllocator17setMemoryFractionEdi>(
        __builtin_return_address(0));
    if (call != nullptr) {
        record_fraction(fraction, device);
        call(fraction, device);
    }
}

// A pluggable allocator replaces the native one, before anything was allocated.
#define FT_CHANGE_ALLOCATOR(name)                                       \
    FT_PUBLIC void name(void* allocator) {                              \
        auto* call = real<Hook::k_##name>(__builtin_return_address(0)); \
        if (call != nullptr) {                                          \
            call(allocator);                                            \
            torch_allocator_changed();                                  \
        }                                                               \
    }
FT_CHANGE_ALLOCATOR(
    _ZN5torch4cuda22CUDAPluggableAllocator22changeCurrentAllocatorERKSt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEE)
FT_CHANGE_ALLOCATOR(
    _ZN5torch4cuda22CUDAPluggableAllocator22changeCurrentAllocatorESt10shared_ptrIN3c104cuda20CUDACachingAllocator13CUDAAllocatorEE)

}  // extern "C"
