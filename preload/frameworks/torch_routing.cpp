#include "frameworks/torch_routing.h"

#include "frameworks/torch_pools.h"
#include "frameworks/torch_state.h"
#include "sys.h"

namespace fragtrace::preload {
namespace {

// ---- filters ------------------------------------------------------------------------------------

struct WatchedFilter {
    Filter original;
    uint32_t pool;
    uint32_t references;  // 0 = free
};

constexpr int kMaxFilters = 256;  // routings at one time, in the process
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
        case Filter::kDestroy: {  // the slot may be taken again only after the original is gone
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

// ---- streams that are routed, before there were filters (2.1, 2.2) ------------------------------

struct RoutedStream {
    uint64_t stream;
    uint32_t pool;  // 0 = free
    uint16_t device;
};

constexpr int kMaxRoutedStreams = 64;
RoutedStream g_routed_streams[kMaxRoutedStreams];
uint32_t g_routed_stream_count;
Lock g_lock;  // writers only

}  // namespace

void watch_filter(Filter* filter, uint32_t pool) {
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
    torch_pools_incomplete("incomplete: more routings at one time than are kept");
}

uint32_t pool_of_stream(uint16_t device, uint64_t stream) {
    if (load_acquire(&g_routed_stream_count) == 0) [[likely]] {
        return 0;
    }
    for (const RoutedStream& routed : g_routed_streams) {
        if (load_acquire(&routed.pool) != 0 && routed.stream == stream && routed.device == device) {
            return routed.pool;
        }
    }
    return 0;
}

void route_stream(uint16_t device, uint64_t stream, uint32_t pool) {
    if (!g_lock.lock_within(50 * kMillisecond_ns)) {
        return;
    }
    for (RoutedStream& routed : g_routed_streams) {
        const bool known = routed.stream == stream && routed.device == device;
        if (pool == 0 ? routed.pool != 0 && known : routed.pool == 0) {
            routed.stream = stream;
            routed.device = device;
            store_release(&routed.pool, pool);
            count_up(&g_routed_stream_count, pool != 0 ? 1u : ~0u);
            break;
        }
    }
    g_lock.unlock();
}

}  // namespace fragtrace::preload
