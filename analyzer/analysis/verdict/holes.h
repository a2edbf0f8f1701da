// The free blocks of a PyTorch pool, and what each would take: the largest request of its stream
// and pool that it serves without a request to the driver. Pure functions.
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
    // Bytes. 0: it is too small for any request of its size class, until a neighbour is freed.
    std::uint64_t largest_request_bytes = 0;
    StreamId stream = kNoStream;
    std::uint32_t private_pool = 0;
    SizeClass size_class = SizeClass::kNone;
    bool whole_segment = false;  // nothing else lies in its segment: it can go back to the driver
};

// Largest requests first, then by address.
std::vector<Hole> holes_of(const HeapSnapshot& heap,
                           const PytorchConfig& config,
                           const PytorchRules& rules);

}  // namespace fragtrace::analyzer
