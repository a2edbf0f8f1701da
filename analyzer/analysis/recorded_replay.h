// What replaying the record under its own settings tells of a device: how well it agrees, why
// requests failed, and how the addresses lay at the peaks.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

// What others hold of the card and somebody could give back: other processes, further contexts,
// libraries. Without the context that the program cannot do without; where its size was not
// measured, only what is known to be another's.
std::uint64_t others_to_go(const DeviceAnalysis& device);

// Fills in `fidelity` where a caching pool was recorded; `result` in any case.
Status add_replay(const Timeline& timeline, DeviceAnalysis* device, ReplayResult* result);

// Fills in diagnoses, the requests of libraries beside the pool, and the maps at the peaks.
Status add_diagnoses(const Timeline& timeline,
                     DeviceAnalysis* device,
                     const ReplayResult& result,
                     const AnalyzeOptions& options,
                     CoverBudget* budget);

}  // namespace fragtrace::analyzer
