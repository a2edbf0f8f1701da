#include "hooks/known_callers.h"

#include "system/sys.h"

#include <pthread.h>

namespace fragtrace::preload {
namespace {

// ---- the cache: (hook, return address) -> real function -----------------------------------------

struct CacheEntry {
    uint64_t key;  // hook << 48 | return address, 0 = free
    void* function;
};

constexpr size_t kCacheEntries = 4096;
constexpr size_t kCacheProbes = 16;
CacheEntry g_cache[kCacheEntries];

// Readers take no lock. Writers do, for this cache and for the objects below: two writers in one
// slot could give a caller another caller's function.
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
            // The slot was emptied meanwhile, and may already belong to another caller.
            return __atomic_load_n(&entry.key, __ATOMIC_RELAXED) == key ? function : nullptr;
        }
        if (found == 0) {
            return nullptr;
        }
    }
    return nullptr;
}

// Needs the lock. If all probed slots are full, an object replaces the first one, and a call site
// is not stored. Without that, each call of a program with very many call sites might be resolved
// again.
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

// ---- objects that have called hooks -------------------------------------------------------------

// A function found for one call site of an object is valid for the whole object. So a program with
// thousands of launch sites resolves once per library, not once per site. When all slots are used,
// each site is resolved separately.
constexpr size_t kMaxObjects = 256;
AddressRange g_objects[kMaxObjects];  // begin is stored last; 0 = free
size_t g_object_count;                // slots that have ever been used

// Number of calls from other objects before the most frequent caller is replaced. Without it,
// objects that alternate would replace each other at every call.
constexpr uint32_t kOthersBeforeChange = 64;

// Needs the lock.
void change_frequent_caller(Hook hook, const AddressRange& range, void* function) {
    FrequentCaller& frequent = g_frequent_callers[static_cast<size_t>(hook)];
    store_release(&frequent.begin, uintptr_t{0});
    store_release(&frequent.size_bytes, range.end - range.begin);
    store_release(&frequent.function, function);
    store_release(&frequent.begin, range.begin);
    store_relaxed(&frequent.others, 0u);
}

// Needs the lock. Returns false without room.
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

// In a forked child, the thread that owned the lock does not exist.
__attribute__((constructor)) void watch_forks() {
    at_fork(nullptr, nullptr, [] { g_writers.reset(); });
}

}  // namespace

constinit FrequentCaller g_frequent_callers[static_cast<size_t>(Hook::kCount)]{};

AddressRange known_object(const void* caller) {
    const size_t count = __atomic_load_n(&g_object_count, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count && i < kMaxObjects; ++i) {
        const uintptr_t begin = __atomic_load_n(&g_objects[i].begin, __ATOMIC_ACQUIRE);
        const uintptr_t end = __atomic_load_n(&g_objects[i].end, __ATOMIC_ACQUIRE);
        const auto value = reinterpret_cast<uintptr_t>(caller);
        if (begin != 0 && value >= begin && value < end &&
            __atomic_load_n(&g_objects[i].begin, __ATOMIC_RELAXED) == begin) {
            return {begin, end};
        }
    }
    return {};
}

void* known_real(Hook hook, const void* caller) {
    return cached(cache_key(hook, caller));
}

void keep_real(
    Hook hook, const void* caller, void* function, uintptr_t object, const AddressRange& range) {
    if (!g_writers.try_lock()) {
        return;
    }
    if (range.begin != 0 && note_object(range)) {
        object = range.begin;
    }
    if (object != 0) {
        remember(cache_key(hook, reinterpret_cast<const void*>(object)), function, true);
    }
    remember(cache_key(hook, caller), function, false);
    g_writers.unlock();
}

void count_call(Hook hook, const void* caller, void* function) {
    FrequentCaller& frequent = g_frequent_callers[static_cast<size_t>(hook)];
    const uint32_t others = load_relaxed(&frequent.others) + 1;
    store_relaxed(&frequent.others, others);
    const bool first = load_relaxed(&frequent.begin) == 0 && others == 1;
    if ((!first && others % kOthersBeforeChange != 0) || !g_writers.try_lock()) {
        return;
    }
    const AddressRange range = known_object(caller);
    if (range.begin != 0) {
        change_frequent_caller(hook, range, function);
    }
    g_writers.unlock();
}

void forget_callers() {
    // The lock is never owned for long. Without it, a slot may be wrong for a moment, which is
    // better than a stale slot forever.
    const bool locked = g_writers.lock_within(50 * kMillisecond_ns);
    for (AddressRange& range : g_objects) {
        __atomic_store_n(&range.begin, 0, __ATOMIC_RELEASE);
    }
    for (FrequentCaller& frequent : g_frequent_callers) {
        store_release(&frequent.begin, uintptr_t{0});
        store_relaxed(&frequent.others, 0u);
    }
    for (CacheEntry& entry : g_cache) {
        __atomic_store_n(&entry.key, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&entry.function, nullptr, __ATOMIC_RELEASE);
    }
    if (locked) {
        g_writers.unlock();
    }
}

}  // namespace fragtrace::preload
