// Which allocations block free memory: the cheapest set of live blocks whose absence would have
// made room.
//
// There are two ways to make room. A window frees neighbouring blocks of one segment, so that the
// request fits in place. A cover returns whole segments, or pages of expandable segments, to the
// driver until the request fits (cover.h). The cost is the live bytes to free or move.
#pragma once

#include "analyzer/analysis/verdict/cover.h"
#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

struct CheapestSet {
    enum class Kind { kNone, kWindow, kSegments, kPages };
    Kind kind = Kind::kNone;
    std::uint64_t bytes_to_free = 0;    // live bytes that must be freed
    std::uint32_t segments = 0;         // kSegments, kPages: whole segments that are emptied
    std::uint32_t pages = 0;            // kPages: pages that are emptied
    double equally_cheap_sets = 0;      // this set included; exact up to 2^53
    bool approximate = false;           // too large to solve exactly: found by a greedy search
    std::vector<std::uint32_t> blocks;  // indices into HeapSnapshot::blocks
};

// The part of the pool that may serve the request. Only windows there count.
struct WindowPlace {
    StreamId stream = kNoStream;  // kNoStream = segments of any stream
    std::optional<std::uint32_t> private_pool;
    SizeClass size_class = SizeClass::kNone;
};

// True if a request with this place may use the segment.
bool may_lie_in(const HeapSegment& segment, const WindowPlace& place);

// `rounded_bytes` is the size of the block; kNoWindow = the pool cannot serve the request.
// `asked_bytes` is the size that the driver would be asked for.
inline constexpr std::uint64_t kNoWindow = ~std::uint64_t{0};

CheapestSet find_cheapest_set(const HeapSnapshot& heap,
                              std::uint64_t rounded_bytes,
                              std::uint64_t asked_bytes,
                              const WindowPlace& place = {},
                              CoverBudget* budget = nullptr);

// Free bytes that each live block keeps from being released. The free bytes of a segment are
// divided among its live blocks in proportion to their bytes. For expandable segments this is done
// page by page. Indexed like HeapSnapshot::blocks.
std::vector<std::uint64_t> held_open_bytes(const HeapSnapshot& heap);

}  // namespace fragtrace::analyzer
