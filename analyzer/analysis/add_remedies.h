// Adds the rows of remedies, the advice, the capacity scans and the near miss of one device.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

// `known`: the replays of the what-if rows of this device.
Status add_remedies(const AnalyzeOptions& options,
                    KnownReplays* known,
                    Analysis* analysis,
                    DeviceAnalysis* device);

}  // namespace fragtrace::analyzer
