// Free memory of a pool, by the requests that may use it. PyTorch serves a request only from free
// blocks of its own stream, private pool and size class.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct FreePlace {
    StreamId stream = kNoStream;               // kNoStream: all streams together
    std::uint64_t stream_handle = kUnknown64;  // the program's handle; 0 = the default stream
    std::uint32_t private_pool = 0;            // 0 = the default pool
    SizeClass size_class = SizeClass::kNone;
    std::uint64_t free_bytes = 0;
    std::uint64_t largest_bytes = 0;  // largest free block
};

struct FreePlaces {
    FreePlace own;                      // memory that the request may be served from
    std::vector<FreePlace> elsewhere;   // most free bytes first, at most kMostFreePlaces
    std::uint64_t elsewhere_bytes = 0;  // all places elsewhere, including those left out
    std::uint64_t elsewhere_largest_bytes = 0;
    std::uint64_t places_left_out = 0;  // places beyond kMostFreePlaces
};

inline constexpr std::size_t kMostFreePlaces = 8;

// Free memory of other streams in the request's own pool and size class. `own` is the place that
// may serve the request.
FreePlaces free_by_stream(const HeapSnapshot& heap, const FreePlace& own);

// Free memory of the request's pool and size class, and of all others, on any stream. Private pools
// in `left_out` do not count.
FreePlaces free_by_pool(const HeapSnapshot& heap,
                        const FreePlace& own,
                        const std::vector<std::uint32_t>& left_out);

}  // namespace fragtrace::analyzer
