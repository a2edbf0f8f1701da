#include "analyzer/analysis/holders/held_pools.h"

#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <map>

namespace fragtrace::analyzer {
namespace {

// The request that led to a segment: the first block in its memory, because PyTorch requests memory
// inside the request for a block. Without such a block, the request for the segment.
EventIndex request_for(const Timeline& timeline, const HeapSegment& segment) {
    constexpr EventIndex kMostLater = 1000;
    const auto count = static_cast<EventIndex>(timeline.events.size());
    const bool reserved = segment.reservation_bytes != 0;
    const DeviceAddress begin = reserved ? segment.reservation : segment.address;
    const std::uint64_t bytes = reserved ? segment.reservation_bytes : segment.size_bytes;
    const EventIndex first = segment.obtained_by;
    for (EventIndex i = first; i < count && i - first < kMostLater; ++i) {
        if (timeline.events.kind(i) == EventKind::kBlockAlloc &&
            timeline.events.address(i) - begin < bytes) {
            return i;
        }
    }
    return first;
}

}  // namespace

std::vector<PrivatePool> private_pools_of(const Timeline& timeline,
                                          const HeapSnapshot& heap,
                                          Symbolizer* symbols) {
    std::map<std::uint32_t, PrivatePool> by_number;
    std::map<std::uint32_t, const HeapSegment*> oldest;
    for (const HeapSegment& segment : heap.segments) {
        if (segment.private_pool == 0) {
            continue;
        }
        PrivatePool& pool = by_number[segment.private_pool];
        pool.reserved_bytes += segment.size_bytes;
        const HeapSegment*& first = oldest[segment.private_pool];
        if (first == nullptr || segment.obtained_by < first->obtained_by) {
            first = &segment;
        }
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            pool.allocated_bytes += block.state == BlockState::kFree ? 0 : block.size_bytes;
        }
    }
    for (const auto& [number, bytes] : heap.unmapped_bytes) {
        if (const auto pool = by_number.find(number); pool != by_number.end()) {
            pool->second.unmapped_bytes = std::min(bytes, pool->second.reserved_bytes);
        }
    }
    std::vector<PrivatePool> pools;
    for (auto& [number, pool] : by_number) {
        pool.number = number;
        const auto identity = timeline.pools.find(number);
        if (identity != timeline.pools.end()) {
            pool.of_graph = identity->second.is_graph();
            pool.name = identity->second.name;
        }
        const EventIndex request = request_for(timeline, *oldest[number]);
        if (request < timeline.events.size()) {
            const OriginId origin = timeline.events[request].origin;
            pool.line = has_stack(timeline.origins[origin]) ? symbols->describe(origin) : "";
        }
        pools.push_back(std::move(pool));
    }
    std::stable_sort(pools.begin(), pools.end(), [](const PrivatePool& a, const PrivatePool& b) {
        return a.reserved_bytes > b.reserved_bytes;
    });
    return pools;
}

}  // namespace fragtrace::analyzer
