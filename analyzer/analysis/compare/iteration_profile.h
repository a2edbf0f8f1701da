// The iterations of a run, as stretches that can be held against another run's.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// One range of a phase; bytes of all devices together.
struct PhaseStretch {
    std::uint64_t peak_allocated = 0;
    std::uint64_t peak_reserved = 0;
    std::int64_t left_bytes = 0;
    std::uint64_t ended = 0;  // how many ranges of the run ended before this one

    void take(std::uint64_t allocated, std::uint64_t reserved) {
        peak_allocated = allocated > peak_allocated ? allocated : peak_allocated;
        peak_reserved = reserved > peak_reserved ? reserved : peak_reserved;
    }

    [[nodiscard]] bool same_as(const PhaseStretch& other) const {
        return peak_allocated == other.peak_allocated && peak_reserved == other.peak_reserved &&
               left_bytes == other.left_bytes;
    }
};

// The iterations that were found (docs/metrics.md, Iterations); the last goes on to the end of the
// trace. Bytes of the device.
struct IterationProfile {
    DeviceId device = 0;
    bool from_phases = false;
    double match_rate = 0;
    std::vector<PhaseStretch> stretches;  // empty = none found
};

// Costs two passes over the events.
IterationProfile iteration_profile(const Timeline& timeline, DeviceId device);

}  // namespace fragtrace::analyzer
