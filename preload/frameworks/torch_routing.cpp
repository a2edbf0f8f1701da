#include "frameworks/torch_routing.h"

#include "frameworks/torch_pools.h"
#include "frameworks/torch_state.h"
#include "hooks/resolve.h"
#include "system/sys.h"

#include <dlfcn.h>

namespace fragtrace::preload {
namespace {

constexpr const char* kRoutingsLost = "incomplete: not all routings to private pools are known";

// ---- filters ------------------------------------------------------------------------------------

struct WatchedFilter {
    Filter original;
    uint32_t pool;
    uint32_t references;  // 0 = free
};

constexpr int kMaxFilters = 256;  // maximum number of simultaneous routings in the process
WatchedFilter g_filters[kMaxFilters];

bool invoke_watched(const void* callable, void** stream) {
    const auto* watched = *static_cast<WatchedFilter* const*>(callable);
    const bool accepts = watched->original.invoke(watched->original.callable, stream);
    if (accepts) {
        torch_thread().routed_pool = watched->pool;
    }
    return accepts;
}

bool manage_watched(void* to, const void* from, int operation) {
    auto* watched = *static_cast<WatchedFilter* const*>(from);
    switch (operation) {
        case Filter::kTypeInfo:
            *static_cast<void**>(to) = nullptr;
            break;
        case Filter::kCallable:
            *static_cast<const void**>(to) = from;
            break;
        case Filter::kClone:
            count_up(&watched->references);
            *static_cast<WatchedFilter**>(to) = watched;
            break;
        case Filter::kDestroy: {  // the slot can be reused only after the original is destroyed
            Filter original = watched->original;
            if (load_acquire(&watched->references) == 1 && original.manage != nullptr) {
                original.manage(original.callable, original.callable, Filter::kDestroy);
            }
            __atomic_fetch_sub(&watched->references, 1, __ATOMIC_ACQ_REL);
            break;
        }
        default:
            break;
    }
    return false;
}

// ---- routed streams and captures, for releases without filters ----------------------------------

struct Routed {
    uint64_t what;  // a stream or, if by_capture, the number of a graph
    uint32_t pool;  // 0 = free
    uint16_t device;
    bool by_capture;
};

constexpr int kMaxRouted = 64;
Routed g_routed[kMaxRouted];
uint32_t g_routed_count;
Lock g_lock;  // writers only

// Adds a routing, or removes it if its pool is 0. Returns false if that was impossible.
bool change_routings(const Routed& wanted) {
    if (!g_lock.lock_within(50 * kMillisecond_ns)) {
        return false;
    }
    bool done = wanted.pool == 0;  // the removed one may not have been kept
    for (Routed& routed : g_routed) {
        const bool known = routed.what == wanted.what && routed.device == wanted.device &&
                           routed.by_capture == wanted.by_capture;
        if (wanted.pool == 0 ? routed.pool != 0 && known : routed.pool == 0) {
            routed.what = wanted.what;
            routed.device = wanted.device;
            routed.by_capture = wanted.by_capture;
            store_release(&routed.pool, wanted.pool);
            count_up(&g_routed_count, wanted.pool != 0 ? 1u : ~0u);
            done = true;
            break;
        }
    }
    g_lock.unlock();
    return done;
}

void route(const Routed& wanted) {
    torch_note_special_block();
    if (!change_routings(wanted)) {
        torch_pools_incomplete(kRoutingsLost);
    }
}

// Returns the graph that a stream is being captured into, 0 if none, by the same query as the
// allocator.
using GetCaptureInfo = int(void* stream, int* status, unsigned long long* graph);
GetCaptureInfo* g_get_capture_info;

uint64_t capture_of(uint64_t stream) {
    constexpr int kActive = 1;  // cudaStreamCaptureStatus
    int status = 0;
    unsigned long long graph = 0;
    const bool known = g_get_capture_info != nullptr && stream != kStreamUnknown &&
                       g_get_capture_info(reinterpret_cast<void*>(stream), &status, &graph) == 0;
    return known && status == kActive ? graph : 0;
}

}  // namespace

void watch_filter(Filter* filter, uint32_t pool) {
    torch_note_special_block();
    if (filter->manage == nullptr || pool == 0) {
        return;
    }
    for (WatchedFilter& watched : g_filters) {
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(
                &watched.references, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            watched.original = *filter;
            watched.pool = pool;
            filter->callable[0] = &watched;
            filter->callable[1] = nullptr;
            filter->manage = &manage_watched;
            filter->invoke = &invoke_watched;
            return;
        }
    }
    torch_pools_incomplete(kRoutingsLost);
}

uint32_t pool_of_stream(uint16_t device, uint64_t stream) {
    if (load_acquire(&g_routed_count) == 0) [[likely]] {
        return 0;
    }
    for (const Routed& routed : g_routed) {
        if (load_acquire(&routed.pool) != 0 && routed.device == device &&
            routed.what == (routed.by_capture ? capture_of(stream) : stream)) {
            return routed.pool;
        }
    }
    return 0;
}

void route_stream(uint16_t device, uint64_t stream, uint32_t pool) {
    route({stream, pool, device, false});
}

void route_capture(uint16_t device, uint64_t graph, uint32_t pool) {
    if (g_get_capture_info == nullptr) {
        // The function of CUDA 11, the only CUDA that this PyTorch was built for. Later ones have
        // more parameters.
        g_get_capture_info = reinterpret_cast<GetCaptureInfo*>(
            real_dlvsym(RTLD_DEFAULT, "cudaStreamGetCaptureInfo", "libcudart.so.11.0"));
        if (g_get_capture_info == nullptr) {
            torch_pools_incomplete("unknown: the runtime does not tell of captures");
            return;
        }
    }
    route({graph, pool, device, true});
}

}  // namespace fragtrace::preload
