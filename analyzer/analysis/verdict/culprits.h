// Who pins the holes: the cheapest set of live blocks whose absence would have made room.
//
// Two ways to make room are compared: an in-place window (neighbouring blocks of one segment),
// and a cover (whole segments, or pages of expandable segments, that go back to the driver until
// the request fits: cover.h). Cost is the live bytes to free or move.
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
    std::uint64_t bytes_to_free = 0;    // live bytes that have to go
    std::uint32_t segments = 0;         // kSegments, kPages: how many, emptied as a whole
    std::uint32_t pages = 0;            // kPages: how many
    double equally_cheap_sets = 0;      // the set itself included; exact up to 2^53
    bool approximate = false;           // too large to solve exactly: greedy
    std::vector<std::uint32_t> blocks;  // indices into HeapSnapshot::blocks
};

// Where in the pool the request may lie: only windows there serve it.
struct WindowPlace {
    StreamId stream = kNoStream;  // kNoStream = in segments of any
    std::optional<std::uint32_t> private_pool;
    SizeClass size_class = SizeClass::kNone;
};

// Whether a request of that place may lie in the segment.
bool may_lie_in(const HeapSegment& segment, const WindowPlace& place);

// `rounded_bytes` is the size of the block (kNoWindow: it cannot lie in the pool), `asked_bytes`
// what the driver would be asked for.
inline constexpr std::uint64_t kNoWindow = ~std::uint64_t{0};

CheapestSet find_cheapest_set(const HeapSnapshot& heap,
                              std::uint64_t rounded_bytes,
                              std::uint64_t asked_bytes,
                              const WindowPlace& place = {},
                              CoverBudget* budget = nullptr);

// Free bytes that a live block keeps from being released: the free bytes of its segment - of an
// expandable one, of the pages that it reaches into - shared by the live blocks there in proportion
// to their bytes. Indexed as HeapSnapshot::blocks.
std::vector<std::uint64_t> held_open_bytes(const HeapSnapshot& heap);

}  // namespace fragtrace::analyzer
