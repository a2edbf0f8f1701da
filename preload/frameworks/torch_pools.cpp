#include "frameworks/torch_pools.h"

#include "frameworks/torch_captures.h"
#include "frameworks/torch_rewind.h"
#include "frameworks/torch_routing.h"
#include "frameworks/torch_state.h"
#include "hooks/framework.h"
#include "recorder/numbered_names.h"
#include "system/address_table.h"
#include "system/sys.h"

#include <stddef.h>
#include <string.h>

namespace fragtrace::preload {
namespace {

// ---- blocks of private pools --------------------------------------------------------------------

AddressTable<uint32_t, 65536> g_blocks;  // live blocks -> pool

// ---- users --------------------------------------------------------------------------------------

struct PoolUsers {
    uint32_t pool;
    uint16_t device;
    int32_t users;  // 0 = free
};

constexpr int kMaxPools = 1024;
PoolUsers g_users[kMaxPools];
Lock g_lock;

constexpr const char* kPoolsLost = "incomplete: not all users of private pools are known";

// Adds or removes one user. Returns true if that was the last one.
bool count_user(uint32_t pool, uint16_t device, int32_t change) {
    bool last = false;
    if (!g_lock.lock_within(50 * kMillisecond_ns)) {
        torch_pools_incomplete(kPoolsLost);
        return last;
    }
    PoolUsers* place = nullptr;
    for (PoolUsers& entry : g_users) {
        if (entry.users != 0 && entry.pool == pool && entry.device == device) {
            place = &entry;
            break;
        }
        if (entry.users == 0 && place == nullptr && change > 0) {
            place = &entry;
        }
    }
    if (place != nullptr) {
        place->pool = pool;
        place->device = device;
        place->users += change;
        last = place->users == 0;
    }
    g_lock.unlock();
    if (place == nullptr && change > 0) {
        torch_pools_incomplete(kPoolsLost);
    }
    return last;
}

// ---- wrappers -----------------------------------------------------------------------------------
// Device ordinals are passed on unchanged, in a whole register.

using BeginToPool = void(void* self, int device, uint64_t first, uint64_t second, Filter* filter);
using BeginStreamToPool =
    void(void* self, int device, void* stream, uint64_t first, uint64_t second);
using EndStreamToPool = void(void* self, int device, void* stream);
using CaptureBegin = void(void* self, int device, uint64_t graph, uint64_t first, uint64_t second);
using OfCapture = void(void* self, int device, uint64_t graph);
using OfPool = void(void* self, int device, uint64_t first, uint64_t second);
using OfPoolWith = void(void* self, int device, uint64_t first, uint64_t second, void* more);

struct Originals {
    BeginToPool* begin_to_pool;
    OfPool* end_to_pool;
    BeginStreamToPool* begin_stream_to_pool;
    EndStreamToPool* end_stream_to_pool;
    CaptureBegin* capture_begin;
    OfCapture* capture_about_to_end;
    OfPool* release_pool;
    OfPoolWith* add_user;
    OfPoolWith* use_on_oom;
    OfPool* no_split;
};

Originals g_original;
bool g_add_user_has_allocator;

uint32_t number_of(uint64_t first, uint64_t second) {
    return pool_number(PoolOwner::kPytorch, first, second);
}

uint64_t record_pool_event(EventKind kind, uint32_t pool, int device, uint64_t size) {
    if (!recording_enabled()) {
        return 0;
    }
    EventRecord event{};
    event.kind = kind;
    event.device = torch_device(device);
    event.size = size;
    event.stream = kStreamUnknown;
    event.pool = pool;
    const Stacks stacks = torch_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    return record(event);
}

// Adds a user. Called after the original call has returned, because that throws if the pool is
// invalid.
void user_added(uint32_t pool, int device) {
    (void)count_user(pool, torch_device(device), 1);
    record_pool_event(EventKind::kPoolUse, pool, device, 1);
}

void begin_to_pool(void* self, int device, uint64_t first, uint64_t second, Filter* filter) {
    const uint32_t pool = number_of(first, second);
    watch_filter(filter, pool);
    g_original.begin_to_pool(self, device, first, second, filter);
    count_routing(device, 1);
    user_added(pool, device);
}

void end_to_pool(void* self, int device, uint64_t first, uint64_t second) {
    g_original.end_to_pool(self, device, first, second);
    count_routing(device, -1);
}

void begin_stream_to_pool(void* self, int device, void* stream, uint64_t first, uint64_t second) {
    const uint32_t pool = number_of(first, second);
    g_original.begin_stream_to_pool(self, device, stream, first, second);
    route_stream(torch_device(device), reinterpret_cast<uint64_t>(stream), pool);
    count_routing(device, 1);
    user_added(pool, device);
}

void end_stream_to_pool(void* self, int device, void* stream) {
    route_stream(torch_device(device), reinterpret_cast<uint64_t>(stream), 0);
    g_original.end_stream_to_pool(self, device, stream);
    count_routing(device, -1);
}

void capture_begin(void* self, int device, uint64_t graph, uint64_t first, uint64_t second) {
    const uint32_t pool = number_of(first, second);
    g_original.capture_begin(self, device, graph, first, second);
    route_capture(torch_device(device), graph, pool);
    count_routing(device, 1);
    user_added(pool, device);
}

void capture_about_to_end(void* self, int device, uint64_t graph) {
    route_capture(torch_device(device), graph, 0);
    g_original.capture_about_to_end(self, device, graph);
    count_routing(device, -1);
}

void add_user(void* self, int device, uint64_t first, uint64_t second, void* allocator) {
    const uint32_t pool = number_of(first, second);
    if (g_add_user_has_allocator) {
        torch_note_pool_allocator(pool, allocator);
    }
    g_original.add_user(self, device, first, second, allocator);
    user_added(pool, device);
}

void release_pool(void* self, int device, uint64_t first, uint64_t second) {
    const uint32_t pool = number_of(first, second);
    record_pool_event(EventKind::kPoolUse, pool, device, 0);
    if (count_user(pool, torch_device(device), -1)) {
        record_pool_event(EventKind::kPoolRelease, pool, device, 0);
    }
    g_original.release_pool(self, device, first, second);
}

void pool_fact(uint32_t pool, const char* name, const char* value) {
    char key[64];
    Text text(key, sizeof key);
    record_fact(text.add("pool.").add_number(pool).add(name).c_str(), value);
}

void use_on_oom(void* self, int device, uint64_t first, uint64_t second, void* use) {
    // Until 2.10 it could only be switched on: there was no last parameter.
    const char* const always[] = {"2.8.", "2.9.", "2.10."};
    bool on = (reinterpret_cast<uintptr_t>(use) & 0xff) != 0;
    for (const char* release : always) {
        on = on || strncmp(torch_release(), release, strlen(release)) == 0;
    }
    if (on) {  // a deleted MemPool switches it off, which must not change the fact about its
               // lifetime
        pool_fact(number_of(first, second), ".use_on_oom", "1");
    }
    g_original.use_on_oom(self, device, first, second, use);
}

void no_split(void* self, int device, uint64_t first, uint64_t second) {
    pool_fact(number_of(first, second), ".no_split", "1");
    g_original.no_split(self, device, first, second);
}

}  // namespace

void torch_pools_incomplete(const char* why) {
    static int said = 0;
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) == 0) {
        record_fact("torch.pools", why);
    }
}

void torch_note_graph_pool(uint32_t pool) {
    static uint64_t noted[kMostNumbers / 64 + 1] = {};
    const uint64_t bit = uint64_t{1} << pool % 64;
    uint64_t* word = &noted[pool / 64];
    if ((__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit) == 0) {
        pool_fact(pool, ".graph", "1");
    }
}

void watch_pools(void** slots, const PoolSlots& layout) {
    replace_slot(slots, layout.begin_to_pool, &g_original.begin_to_pool, &begin_to_pool);
    replace_slot(slots, layout.end_to_pool, &g_original.end_to_pool, &end_to_pool);
    replace_slot(slots,
                 layout.begin_stream_to_pool,
                 &g_original.begin_stream_to_pool,
                 &begin_stream_to_pool);
    replace_slot(
        slots, layout.end_stream_to_pool, &g_original.end_stream_to_pool, &end_stream_to_pool);
    replace_slot(slots, layout.capture_begin, &g_original.capture_begin, &capture_begin);
    replace_slot(slots,
                 layout.capture_about_to_end,
                 &g_original.capture_about_to_end,
                 &capture_about_to_end);
    replace_slot(slots, layout.release_pool, &g_original.release_pool, &release_pool);
    g_add_user_has_allocator = layout.add_user_has_allocator;
    replace_slot(slots, layout.add_user, &g_original.add_user, &add_user);
    replace_slot(slots, layout.use_on_oom, &g_original.use_on_oom, &use_on_oom);
    replace_slot(slots, layout.no_split, &g_original.no_split, &no_split);
    watch_rewinds(slots, layout);
    const bool routing = layout.begin_to_pool != kNoSlot ||
                         layout.begin_stream_to_pool != kNoSlot || layout.capture_begin != kNoSlot;
    record_fact("torch.pools", routing ? "recorded" : "unknown: no known way of routing to them");
}

bool pool_has_users(uint32_t pool, uint16_t device) {
    if (pool == 0 || !g_lock.lock_within(50 * kMillisecond_ns)) {
        return false;
    }
    bool found = false;
    for (const PoolUsers& entry : g_users) {
        found = found || (entry.users > 0 && entry.pool == pool && entry.device == device);
    }
    g_lock.unlock();
    return found;
}

bool block_is_private(uint64_t address) {
    return g_blocks.contains(address);
}

uint32_t pool_of_request(uint16_t device, uint64_t stream) {
    const uint32_t pool = torch_thread().routed_pool;
    return pool != 0 ? pool : pool_of_stream(device, stream);
}

uint32_t pool_of_new_block(uint64_t address, uint16_t device, uint64_t stream) {
    TorchThread& thread = torch_thread();
    const uint32_t set_back = pool_set_back();
    const uint32_t pool = set_back != 0 ? set_back : pool_of_request(device, stream);
    thread.routed_pool = 0;
    if (pool != 0) {
        torch_note_special_block();
        if (!g_blocks.insert(address, pool)) {
            torch_pools_incomplete("incomplete: more private blocks than are kept");
        }
    } else if (!g_blocks.empty()) {  // left over from a free that was not seen
        uint32_t stale = 0;
        (void)g_blocks.take(address, &stale);
    }
    return pool;
}

uint32_t pool_of_freed_block(uint64_t address) {
    uint32_t pool = 0;
    (void)g_blocks.take(address, &pool);
    return pool;
}

}  // namespace fragtrace::preload
