// The figures of a run without its events: what `fraganalyze summarize` prints. The numbers are
// those of measure_device(); memory is in proportion to what the process holds at a time.
#pragma once

#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct DeviceSummary {
    DeviceId device = 0;
    DeviceMetrics metrics;  // summary.driver_time_ns is not known
    std::uint64_t peak_time_ns = 0;
    // At the peak, most bytes first, by origin (in TraceSummary::tables) and not yet by line: only
    // where nothing that was held has a stack is there a label, the size of each block.
    std::vector<HeldBy> holders;
};

struct TraceSummary {
    Timeline tables;  // without events
    std::uint64_t events = 0;
    std::uint64_t events_left_out = 0;  // came late or twice
    std::uint64_t last_event_ns = 0;
    std::vector<DeviceSummary> devices;
};

// Of a trace or a snapshot of PyTorch's allocator, which is read as a whole. One pass to learn
// which devices there are, and one for each. Without `holders` none are looked for, which takes a
// third of the time.
Result<TraceSummary> summarize_trace(const std::string& path, bool holders = true);

}  // namespace fragtrace::analyzer
