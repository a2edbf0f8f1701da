// When a pool asked the driver for memory many times in a row: what a new size, a new phase or a
// cache that was just emptied costs. docs/metrics.md, Bursts.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct DriverBurst {
    EventIndex first = kNoEvent;
    EventIndex last = kNoEvent;
    std::uint64_t requests = 0;  // cudaMallocs, maps and their like
    std::uint64_t bytes = 0;
};

inline constexpr std::size_t kMostDriverBursts = 200;

// At most `limit` of a device, those with the most requests, ascending by time. One pass.
std::vector<DriverBurst> find_driver_bursts(const Timeline& timeline,
                                            DeviceId device,
                                            std::size_t limit = kMostDriverBursts);

}  // namespace fragtrace::analyzer
