// What happened while phases were open, and calls that failed for want of memory: the parts of a
// run's metrics that need the recorded state.
#pragma once

#include "analyzer/analysis/metrics/run_metrics.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// What PhaseTotals sums up, of one range.
struct PhaseRange {
    std::uint32_t phase = 0;           // in Timeline::phases
    std::uint64_t peak_allocated = 0;  // bytes, of all devices together
    std::uint64_t peak_reserved = 0;
    std::int64_t left_bytes = 0;
};

// In the order in which they end. Costs a pass over the events where there are any phases.
std::vector<PhaseRange> measure_phase_ranges(const Timeline& timeline);

// Fills phases and call_ooms; `retries` must be complete. Costs a pass over the events where there
// are any of either.
void add_phase_metrics(const Timeline& timeline, RunMetrics* metrics);

}  // namespace fragtrace::analyzer
