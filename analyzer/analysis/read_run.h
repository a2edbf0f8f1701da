// Reads a run for an analysis: as a whole or, if it is too long, in windows (windows.h).
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/model/timeline.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fragtrace::analyzer {

struct ReadRun {
    Timeline timeline;
    std::optional<TraceSummary> whole;  // of the whole trace, if the timeline is only a part of it
};

// Reads traces with more than `most_events` in part.
// Errors (kInput): as read_input().
Result<ReadRun> read_run(const std::string& path,
                         std::uint64_t most_events,
                         const InputOptions& options = {});

}  // namespace fragtrace::analyzer
