// Peaks and counts of a run. Recorded and replayed runs have the same figures.
#pragma once

#include "analyzer/replay/replayer.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

// docs/metrics.md has the definitions. Each peak is the maximum of its own quantity, so the peaks
// can be at different times.
struct RunFigures {
    std::uint64_t peak_requested = 0;
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_active = 0;
    std::uint64_t peak_reserved = 0;
    // Requests that PyTorch passed to the driver while caching was off. The figures above exclude
    // them.
    std::uint64_t peak_past_pool = 0;
    std::uint64_t peak_with_past_pool = 0;  // peak of reserved plus these requests
    // The split of reserved memory when it first reached its maximum, once that request had
    // completed.
    WasteSplit waste_at_peak = {};
    std::uint64_t segments_allocated = 0;
    std::uint64_t segments_freed = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    std::uint64_t driver_time_ns = 0;  // time in allocating and freeing calls; 0 = not measured
};

// Peaks of a stretch of a run, and the memory that it left. Bytes of one device, or of all devices
// together.
struct StretchFigures {
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_reserved = 0;
    std::int64_t left_bytes = 0;  // allocated at the end minus allocated at the start

    void take(std::uint64_t allocated, std::uint64_t reserved) {
        peak_allocated = std::max(peak_allocated, allocated);
        peak_reserved = std::max(peak_reserved, reserved);
    }

    // Adds another stretch of the same name.
    void add(const StretchFigures& other) {
        take(other.peak_allocated, other.peak_reserved);
        left_bytes += other.left_bytes;
    }

    bool operator==(const StretchFigures&) const = default;
};

RunFigures summarize(const ReplayResult& result);

}  // namespace fragtrace::analyzer
