// Free memory of a pool by who may use it. PyTorch serves a request from free blocks of its own
// stream, private pool and size class, and from no others.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct FreePlace {
    StreamId stream = kNoStream;               // kNoStream: of all streams together
    std::uint64_t stream_handle = kUnknown64;  // as the program has it; 0 = the default stream
    std::uint32_t private_pool = 0;            // 0 = the default pool
    SizeClass size_class = SizeClass::kNone;
    std::uint64_t free_bytes = 0;
    std::uint64_t largest_bytes = 0;  // largest free block
};

struct FreePlaces {
    FreePlace own;                      // what the request may be served from
    std::vector<FreePlace> elsewhere;   // most free bytes first, at most kMostFreePlaces
    std::uint64_t elsewhere_bytes = 0;  // of all of them
    std::uint64_t elsewhere_largest_bytes = 0;
    std::uint64_t places_left_out = 0;  // beyond that many
};

inline constexpr std::size_t kMostFreePlaces = 8;

// What other streams have free in the request's own pool and size class. `own` says where the
// request may be served from.
FreePlaces free_by_stream(const HeapSnapshot& heap, const FreePlace& own);

// What the request's pool and size class, and all others, have free on any stream. Private pools
// in `left_out` do not count.
FreePlaces free_by_pool(const HeapSnapshot& heap,
                        const FreePlace& own,
                        const std::vector<std::uint32_t>& left_out);

}  // namespace fragtrace::analyzer
