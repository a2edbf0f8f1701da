// See resolve.h.
#include "resolve.h"

#include "frameworks/torch.h"
#include "plain_text.h"
#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <initializer_list>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Filled by fragtrace_find_loader; read by jump.S.
extern "C" {
__attribute__((visibility("hidden"))) void* fragtrace_real_loader[2];
__attribute__((visibility("hidden"))) void fragtrace_find_loader();
}

namespace fragtrace::preload {
namespace {

constexpr size_t kHookCount = static_cast<size_t>(Hook::kCount);

// Cached for a function that is only called and that a loaded library does not have.
char g_missing;

// Addresses seen through dlsym and cuGetProcAddress, one per hook.
void* g_seen[kHookCount];

// ---- the cache: (hook, return address) -> real function -----------------------------------------

struct CacheEntry {
    uint64_t key;  // hook << 48 | return address, 0 = free
    void* function;
};

constexpr size_t kCacheEntries = 4096;
constexpr size_t kCacheProbes = 16;
CacheEntry g_cache[kCacheEntries];

// Readers take no lock. Writers do, here and for the objects below: two of them in one slot could
// give a caller another one's function.
Lock g_writers;

uint64_t cache_key(Hook hook, const void* caller) {
    return (static_cast<uint64_t>(hook) + 1) << 48 |
           (reinterpret_cast<uint64_t>(caller) & ((uint64_t{1} << 48) - 1));
}

size_t cache_slot(uint64_t key) {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15ull) >> 52) % kCacheEntries;
}

void* cached(uint64_t key) {
    const size_t slot = cache_slot(key);
    for (size_t i = 0; i < kCacheProbes; ++i) {
        CacheEntry& entry = g_cache[(slot + i) % kCacheEntries];
        const uint64_t found = __atomic_load_n(&entry.key, __ATOMIC_ACQUIRE);
        if (found == key) {
            void* function = __atomic_load_n(&entry.function, __ATOMIC_ACQUIRE);
            // Emptied meanwhile, and perhaps taken by another caller already.
            return __atomic_load_n(&entry.key, __ATOMIC_RELAXED) == key ? function : nullptr;
        }
        if (found == 0) {
            return nullptr;
        }
    }
    return nullptr;
}

// With the lock. A full neighbourhood gives its first slot up for an object: without that each call
// of a program with very many call sites could be resolved anew. A call site goes without.
void remember(uint64_t key, void* function, bool of_object) {
    const size_t slot = cache_slot(key);
    CacheEntry* place = of_object ? &g_cache[slot] : nullptr;
    for (size_t i = 0; i < kCacheProbes; ++i) {
        CacheEntry& entry = g_cache[(slot + i) % kCacheEntries];
        if (entry.key == key || entry.key == 0) {
            place = &entry;
            break;
        }
    }
    if (place != nullptr && (place->key != key || place->function != function)) {
        __atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&place->function, function, __ATOMIC_RELEASE);
        __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
    }
}

// ---- objects that have called
// ---------------------------------------------------------------------

// What was found for one place of an object holds for all of it: a program with thousands of launch
// sites resolves once per library, not once per site. When the slots are used up, each site is
// resolved.
constexpr size_t kMaxObjects = 256;
AddressRange g_objects[kMaxObjects];  // begin is stored last; 0 = free
size_t g_object_count;                // slots that were ever used

uintptr_t known_object(const void* caller) {
    const size_t count = __atomic_load_n(&g_object_count, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count && i < kMaxObjects; ++i) {
        const uintptr_t begin = __atomic_load_n(&g_objects[i].begin, __ATOMIC_ACQUIRE);
        const auto value = reinterpret_cast<uintptr_t>(caller);
        if (begin != 0 && value >= begin &&
            value < __atomic_load_n(&g_objects[i].end, __ATOMIC_ACQUIRE) &&
            __atomic_load_n(&g_objects[i].begin, __ATOMIC_RELAXED) == begin) {
            return begin;
        }
    }
    return 0;
}

AddressRange range_of_caller(const void* caller) {
    const link_map* map = object_at(caller);
    const AddressRange range = map == nullptr ? AddressRange{} : object_range(map);
    return range.contains(caller) ? range : AddressRange{};
}

// With the lock; false without room.
bool note_object(const AddressRange& range) {
    size_t slot = 0;
    while (slot < g_object_count && g_objects[slot].begin != 0 &&
           g_objects[slot].begin != range.begin) {
        ++slot;
    }
    if (slot == kMaxObjects) {
        return false;
    }
    __atomic_store_n(&g_objects[slot].begin, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&g_objects[slot].end, range.end, __ATOMIC_RELEASE);
    __atomic_store_n(&g_objects[slot].begin, range.begin, __ATOMIC_RELEASE);
    if (slot == g_object_count) {
        __atomic_store_n(&g_object_count, slot + 1, __ATOMIC_RELEASE);
    }
    return true;
}

// In a forked child the holder of the lock is gone.
__attribute__((constructor)) void watch_forks() {
    pthread_atfork(nullptr, nullptr, [] { g_writers.reset(); });
}

// ---- preload order ------------------------------------------------------------------------------

constexpr char kPreloadVariable[] = "LD_PRELOAD=";
constexpr size_t kPreloadList_bytes = 8192;
// A short list is not zero at first, so that it lies in the page of data that the loader has
// written already: most processes never come further than the constructor.
char g_short_preload_list[256] = " ";
char g_long_preload_list[kPreloadList_bytes];

// Programs drop or change LD_PRELOAD for their children: the list that they were started with is
// what says which objects are interposers.
__attribute__((constructor)) void keep_preload_list() {
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
        if (!begins_with(*at, kPreloadVariable)) {
            continue;
        }
        const char* list = *at + sizeof kPreloadVariable - 1;
        const size_t length = text_length(list);
        char* kept =
            length < sizeof g_short_preload_list ? g_short_preload_list : g_long_preload_list;
        for (size_t i = 0; length < kPreloadList_bytes && i <= length; ++i) {
            kept[i] = list[i];
            asm volatile("");
        }
        return;
    }
}

// As it is, before our constructor ran and where it did not fit.
const char* preload_list() {
    if (g_long_preload_list[0] != '\0') {
        return g_long_preload_list;
    }
    return g_short_preload_list[0] != ' ' ? g_short_preload_list : getenv("LD_PRELOAD");
}

// True if LD_PRELOAD named the object.
bool is_preload(const link_map* map) {
    const char* list = preload_list();
    const char* name = base_name(map);
    const size_t length = text_length(name);
    if (list == nullptr || length == 0) {
        return false;
    }
    for (const char* at = list; *at != '\0';) {
        size_t entry = 0;
        while (at[entry] != '\0' && at[entry] != ':' && at[entry] != ' ') {
            ++entry;
        }
        if (entry >= length && begins_with(at + entry - length, name) &&
            (entry == length || at[entry - length - 1] == '/')) {
            return true;
        }
        at += entry + (at[entry] != '\0' ? 1 : 0);
    }
    return false;
}

// The first definition in a preloaded object that follows `after` in load order.
void* preload_definition(const link_map* after, const char* name) {
    for (const link_map* map = after->l_next; map != nullptr && is_preload(map);
         map = map->l_next) {
        bool indirect = false;
        void* symbol = defined_symbol(map, name, &indirect);
        if (symbol != nullptr && !indirect) {
            return symbol;
        }
    }
    return nullptr;
}

// As find_definition, for objects that are never unloaded: dl_iterate_phdr may be interposed by a
// library that is not ready to be called yet.
void* early_definition(const char* prefix, const char* name) {
    for (const link_map* map = first_object(); map != nullptr; map = map->l_next) {
        bool indirect = false;
        if (begins_with(base_name(map), prefix)) {
            return defined_symbol(map, name, &indirect);
        }
    }
    return nullptr;
}

bool precedes(const link_map* first, const link_map* second) {
    for (const link_map* map = first; map != nullptr; map = map->l_next) {
        if (map == second) {
            return true;
        }
    }
    return false;
}

// The object is one more interposer of `name`: preloaded, defines it, and is not the library that
// the name belongs to.
bool is_interposer(const link_map* map, const HookInfo& info) {
    bool indirect = false;
    return is_preload(map) && !begins_with(base_name(map), info.object) &&
           defined_symbol(map, info.name, &indirect) != nullptr;
}

// The real dlsym as seen from here: RTLD_NEXT means "behind this library". Never a tail call.
[[gnu::noinline]] void* dlsym_from_here(void* handle, const char* name) {
    void* symbol = real_dlsym(handle, name);
    asm volatile("" : "+r"(symbol));
    return symbol;
}

// What the caller's own object would find: itself and the objects it needs.
void* scope_definition(const link_map* caller, const char* name) {
    const char* path = caller->l_name[0] == '\0' ? nullptr : caller->l_name;
    void* handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) {
        return nullptr;
    }
    void* symbol = real_dlsym(handle, name);
    dlclose(handle);
    return symbol;
}

// Keeps the object of a real function loaded, so that a cached address cannot dangle.
void pin(const void* function) {
    const link_map* map = object_at(function);
    if (map != nullptr && map->l_name[0] != '\0') {
        (void)dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY | RTLD_NODELETE);
    }
}

bool usable(const void* symbol, const link_map* excluded) {
    return symbol != nullptr && !is_ours(symbol) &&
           (excluded == nullptr || object_at(symbol) != excluded);
}

void* resolve_slowly(Hook hook, const void* caller) {
    const SignalsHeldBack no_signals;  // a handler's first call must not find the loader half-way
    const HookInfo info = hook_info(hook);
    const link_map* object = object_at(caller);
    if (object != nullptr) {
        torch_note_object(object);
    }
    void* symbol = resolve_in_scope(hook, object);
    if (symbol == nullptr) {
        symbol = __atomic_load_n(&g_seen[static_cast<size_t>(hook)], __ATOMIC_ACQUIRE);
    }
    if (symbol == nullptr) {
        symbol = find_definition(first_object(), info.object, info.name);
    }
    if (symbol != nullptr) {
        pin(symbol);
    } else if (info.wrapper == nullptr && find_object(info.object) != nullptr) {
        symbol = &g_missing;
    }
    (void)dlerror();  // our failed look-ups are not the host's errors
    return symbol;
}

}  // namespace

void* real_dlsym(void* handle, const char* name) {
    if (__atomic_load_n(&fragtrace_real_loader[0], __ATOMIC_ACQUIRE) == nullptr) {
        fragtrace_find_loader();
    }
    auto* function = reinterpret_cast<void* (*)(void*, const char*)>(fragtrace_real_loader[0]);
    void* symbol = function == nullptr ? nullptr : function(handle, name);
    asm volatile("" : "+r"(symbol));  // no tail call: the real one looks at its caller
    return symbol;
}

void* real_dlvsym(void* handle, const char* name, const char* version) {
    if (__atomic_load_n(&fragtrace_real_loader[1], __ATOMIC_ACQUIRE) == nullptr) {
        fragtrace_find_loader();
    }
    using Function = void* (*)(void*, const char*, const char*);
    auto* function = reinterpret_cast<Function>(fragtrace_real_loader[1]);
    void* symbol = function == nullptr ? nullptr : function(handle, name, version);
    asm volatile("" : "+r"(symbol));
    return symbol;
}

void* resolve_in_scope(Hook hook, const link_map* caller) {
    const HookInfo info = hook_info(hook);
    const link_map* ours = our_object();
    const link_map* interposer =
        caller != nullptr && is_interposer(caller, info) ? caller : nullptr;
    const link_map* after = interposer != nullptr && precedes(ours, interposer) ? interposer : ours;
    void* symbol = after == nullptr ? nullptr : preload_definition(after, info.name);
    if (symbol != nullptr) {
        return symbol;
    }
    if (caller != nullptr) {
        symbol = scope_definition(caller, info.name);
        if (usable(symbol, interposer)) {
            return symbol;
        }
    }
    if (interposer != nullptr) {
        // It asked for what lies below it; its needed objects follow it in load order.
        return find_definition(interposer->l_next, info.object, info.name);
    }
    symbol = dlsym_from_here(RTLD_NEXT, info.name);
    return usable(symbol, nullptr) ? symbol : nullptr;
}

void* next_definition(const char* name) {
    void* symbol = preload_definition(our_object(), name);
    return symbol != nullptr ? symbol : dlsym_from_here(RTLD_NEXT, name);
}

void* next_definition_at_start(const char* name) {
    for (const link_map* map = our_object()->l_next; map != nullptr; map = map->l_next) {
        bool indirect = false;
        void* symbol = defined_symbol(map, name, &indirect);
        if (symbol != nullptr && !indirect) {
            return symbol;
        }
    }
    return nullptr;
}

bool remember_real(Hook hook, void* function) {
    void*& seen = g_seen[static_cast<size_t>(hook)];
    void* expected = nullptr;
    if (__atomic_compare_exchange_n(
            &seen, &expected, function, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        pin(function);
        return true;
    }
    // There is one driver, whatever address it gives; two runtimes are two different things.
    return expected == function || hook_info(hook).library == kDriverLibrary;
}

void forget_callers() {
    // Nobody holds it for long; better a slot that is wrong for a moment than a stale one for ever.
    const bool locked = g_writers.lock_within(50 * kMillisecond_ns);
    for (AddressRange& range : g_objects) {
        __atomic_store_n(&range.begin, 0, __ATOMIC_RELEASE);
    }
    for (CacheEntry& entry : g_cache) {
        __atomic_store_n(&entry.key, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&entry.function, nullptr, __ATOMIC_RELEASE);
    }
    if (locked) {
        g_writers.unlock();
    }
}

void* resolve(Hook hook, const void* caller) {
    caller = torch_canonical_caller(caller);
    const uint64_t key = cache_key(hook, caller);
    void* function = cached(key);
    if (function != nullptr) [[likely]] {
        return function == &g_missing ? nullptr : function;
    }
    uintptr_t object = known_object(caller);
    function =
        object == 0 ? nullptr : cached(cache_key(hook, reinterpret_cast<const void*>(object)));
    const KeepErrno keep_errno;
    const bool is_new = function == nullptr;
    AddressRange range{};
    if (is_new) {
        function = resolve_slowly(hook, caller);
        if (object == 0) {
            range = range_of_caller(caller);
        }
    }
    if (function != nullptr && g_writers.try_lock()) {
        if (range.begin != 0 && note_object(range)) {
            object = range.begin;
        }
        if (is_new && object != 0) {
            remember(cache_key(hook, reinterpret_cast<const void*>(object)), function, true);
        }
        remember(key, function, false);
        g_writers.unlock();
    }
    return function == &g_missing ? nullptr : function;
}

}  // namespace fragtrace::preload

// A later preload may interpose dlsym as well: it stays in the chain.
extern "C" void fragtrace_find_loader() {
    using namespace fragtrace::preload;
    static const char* const kNames[] = {"dlsym", "dlvsym"};
    for (int i = 0; i < 2; ++i) {
        void* function = preload_definition(our_object(), kNames[i]);
        // libdl: before glibc 2.34.
        for (const char* library : {"libc.so", "libdl.so"}) {
            if (function == nullptr) {
                function = early_definition(library, kNames[i]);
            }
        }
        __atomic_store_n(&fragtrace_real_loader[i], function, __ATOMIC_RELEASE);
    }
}
