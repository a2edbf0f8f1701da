// Reads a run for an analysis: as a whole or, if it is too long, in windows (windows.h).
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct ReadRun {
    Timeline timeline;
    std::optional<TraceSummary> whole;  // of the whole trace, if the timeline is only a part of it
};

// Errors (kInput): as read_input().
Result<ReadRun> read_run(const std::string& path, const AnalyzeOptions& options);

// Takes the figures of the whole run where only a part of it was read. Times in calls are of the
// part, so they are left out.
void take_whole_run(const TraceSummary& whole,
                    const std::vector<DeviceId>& devices,
                    RecordedRun* recorded);

}  // namespace fragtrace::analyzer
