// Which figures of a run are known. An import may not show the memory that the pool reserved
// (analyzer/model/unknown_segments.h). Then only the peak of allocated memory, the number of OOMs
// and, in some formats, the peaks of requested and reserved memory are known. The other figures are
// kUnknown64, except that the number of retries is 0. Nothing that follows from them may be shown.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/analysis/metrics/run_figures.h"

namespace fragtrace::analyzer {

// Whether segments were recorded: waste, driver calls and retries are known.
inline bool segments_known(const RunFigures& run) {
    return run.waste_at_peak.reserved != kUnknown64;
}

inline bool requested_known(const RunFigures& run) {
    return run.peak_requested != kUnknown64;
}

// Also if the input reports it as a sum.
inline bool reserved_known(const RunFigures& run) {
    return run.peak_reserved != kUnknown64;
}

inline void forget_segments(RunFigures* run) {
    run->waste_at_peak = {.reserved = kUnknown64};
    run->peak_active = kUnknown64;
    run->peak_reserved = kUnknown64;
    run->peak_past_pool = kUnknown64;
    run->peak_with_past_pool = kUnknown64;
    run->segments_allocated = kUnknown64;
    run->segments_freed = kUnknown64;
}

}  // namespace fragtrace::analyzer
