// Adds the rows of remedies, the advice, the capacity scans and the near miss of one device.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

Status add_remedies(const AnalyzeOptions& options, Analysis* analysis, DeviceAnalysis* device);

}  // namespace fragtrace::analyzer
