#include "analyzer/analysis/metrics/run_figures.h"

namespace fragtrace::analyzer {

RunFigures summarize(const ReplayResult& result) {
    const PoolStatistics& statistics = result.statistics;
    return {.peak_requested = statistics.requested.peak,
            .peak_allocated = statistics.allocated.peak,
            .peak_active = statistics.active.peak,
            .peak_reserved = statistics.reserved.peak,
            .waste_at_peak = result.waste_at_peak,
            .segments_allocated = statistics.segments_allocated,
            .segments_freed = statistics.segments_freed,
            .retries = result.retries(),
            .ooms = result.ooms()};
}

}  // namespace fragtrace::analyzer
