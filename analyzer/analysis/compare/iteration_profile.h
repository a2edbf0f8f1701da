// The iterations of a run, as stretches that can be compared with another run's.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Nanoseconds since the start of the trace.
struct TimeSpan {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
};

// The iterations that were found (docs/metrics.md, Iterations). The last one lasts to the end of
// the trace. Bytes are those of the device.
struct IterationProfile {
    DeviceId device = 0;
    bool from_phases = false;
    double match_rate = 0;
    std::vector<StretchFigures> stretches;  // empty = no iterations found
    std::vector<TimeSpan> times;            // of the stretches
};

// Linear in the number of events.
IterationProfile iteration_profile(const Timeline& timeline, DeviceId device);

}  // namespace fragtrace::analyzer
