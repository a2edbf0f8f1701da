// Measures all metrics of a recorded run in one walk over its events.
#pragma once

#include "analyzer/analysis/metrics/device_metrics.h"
#include "analyzer/analysis/metrics/maximum_history.h"
#include "analyzer/analysis/metrics/phase_metrics.h"
#include "analyzer/analysis/metrics/run_metrics.h"

#include <vector>

namespace fragtrace::analyzer {

struct RecordedRun {
    // `devices` and `peaks` have one entry per requested device, in the requested order.
    std::vector<DeviceMetrics> devices;
    std::vector<PeakHistory> peaks;
    RunMetrics run;
    std::vector<PhaseRange> phase_ranges;  // in the order in which they ended
};

RecordedRun measure(const Timeline& timeline, const std::vector<DeviceId>& devices);

}  // namespace fragtrace::analyzer
