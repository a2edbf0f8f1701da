// Finds moments when a pool allocated from the driver many times in a row. This is the cost of a
// new size, a new phase or a cache that was just emptied. docs/metrics.md, Bursts.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct DriverBurst {
    EventIndex first = kNoEvent;
    EventIndex last = kNoEvent;
    std::uint64_t requests = 0;  // cudaMallocs and maps
    std::uint64_t bytes = 0;
};

inline constexpr std::size_t kMostDriverBursts = 200;

// The bursts of a device with the most requests, at most `limit`, in time order. One pass over the
// events.
std::vector<DriverBurst> find_driver_bursts(const Timeline& timeline,
                                            DeviceId device,
                                            std::size_t limit = kMostDriverBursts);

}  // namespace fragtrace::analyzer
