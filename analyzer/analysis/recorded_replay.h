// Replays a device with the recorded settings. Finds how well the replay agrees with the recording,
// why requests failed, and the address maps at the peaks.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

// The part of others_bytes that could be freed: other processes, further contexts, libraries. The
// program's own context does not count, as the program needs it. If the context's size was not
// measured, only memory with a known owner counts.
std::uint64_t others_to_go(const DeviceAnalysis& device);

// Fills `fidelity` if a caching pool was recorded, and `sizes` if it was recorded by a snapshot.
// Fills `result` in any case.
Status add_replay(const Timeline& timeline,
                  DeviceAnalysis* device,
                  ReplayResult* result,
                  OtherSizes* sizes);

// Fills the diagnoses, the failed requests of libraries outside the pool, and the maps at the
// peaks.
Status add_diagnoses(const Timeline& timeline,
                     DeviceAnalysis* device,
                     const ReplayResult& result,
                     const AnalyzeOptions& options,
                     CoverBudget* budget);

}  // namespace fragtrace::analyzer
