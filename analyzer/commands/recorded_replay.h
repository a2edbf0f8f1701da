// What replaying the record under its own settings tells of a device: how well it agrees, why
// requests failed, and how the addresses lay at the peaks.
#pragma once

#include "analyzer/commands/analyze.h"

namespace fragtrace::analyzer {

// Fills in `fidelity` where a caching pool was recorded; `result` in any case.
Status add_replay(const Timeline& timeline, DeviceAnalysis* device, ReplayResult* result);

// Fills in diagnoses, the requests of libraries beside the pool, and the maps at the peaks.
Status add_diagnoses(const Timeline& timeline,
                     DeviceAnalysis* device,
                     const ReplayResult& result,
                     const AnalyzeOptions& options);

}  // namespace fragtrace::analyzer
