// The free blocks of a PyTorch pool, each with the largest request that it can serve without a
// driver call. Such a request must come from the block's stream and pool. Pure functions.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct PytorchConfig;
struct PytorchRules;

struct Hole {
    DeviceAddress address = 0;
    std::uint64_t size_bytes = 0;
    // 0: too small for any request of its size class, unless a neighbour is freed.
    std::uint64_t largest_request_bytes = 0;
    StreamId stream = kNoStream;
    std::uint32_t private_pool = 0;
    SizeClass size_class = SizeClass::kNone;
    bool whole_segment = false;  // it fills its segment, which can thus be returned to the driver
};

// Holes that serve the largest requests come first, then by address.
std::vector<Hole> holes_of(const HeapSnapshot& heap,
                           const PytorchConfig& config,
                           const PytorchRules& rules);

}  // namespace fragtrace::analyzer
