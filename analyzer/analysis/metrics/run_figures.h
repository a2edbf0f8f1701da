// Peaks and counts of a run, recorded or replayed: the same keys for both.
#pragma once

#include "analyzer/replay/replayer.h"

#include <algorithm>
#include <cstdint>

namespace fragtrace::analyzer {

// docs/metrics.md has the definitions. Every peak is its quantity's own maximum.
struct RunFigures {
    std::uint64_t peak_requested = 0;
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_active = 0;
    std::uint64_t peak_reserved = 0;
    // Requests that PyTorch passed to the driver while its caching was off: in none of the above.
    std::uint64_t peak_past_pool = 0;
    std::uint64_t peak_with_past_pool = 0;  // of reserved and these together
    // The split once the request completed that first brought reserved to its maximum.
    WasteSplit waste_at_peak = {};
    std::uint64_t segments_allocated = 0;
    std::uint64_t segments_freed = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    std::uint64_t driver_time_ns = 0;  // in allocating and freeing calls; 0 = not measured
};

// What a stretch of a run held at most, and what it left: bytes of one device, or of all together.
struct StretchFigures {
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_reserved = 0;
    std::int64_t left_bytes = 0;  // allocated at the end less at the begin

    void take(std::uint64_t allocated, std::uint64_t reserved) {
        peak_allocated = std::max(peak_allocated, allocated);
        peak_reserved = std::max(peak_reserved, reserved);
    }

    // All stretches of a name as one.
    void add(const StretchFigures& other) {
        take(other.peak_allocated, other.peak_reserved);
        left_bytes += other.left_bytes;
    }

    bool operator==(const StretchFigures&) const = default;
};

RunFigures summarize(const ReplayResult& result);

}  // namespace fragtrace::analyzer
