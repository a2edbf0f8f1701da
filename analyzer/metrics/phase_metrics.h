// What happened while phases were open, and calls that failed for want of memory: the parts of a
// run's metrics that need the recorded state.
#pragma once

#include "analyzer/metrics/run_metrics.h"

namespace fragtrace::analyzer {

// Fills phases and call_ooms; `retries` must be complete. Costs a pass over the events where there
// are any of either.
void add_phase_metrics(const Timeline& timeline, RunMetrics* metrics);

}  // namespace fragtrace::analyzer
