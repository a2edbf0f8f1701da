// Puts what-if rows of remedies, advice, capacity scans and near misses together for one device.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

Status add_remedies(const AnalyzeOptions& options, Analysis* analysis, DeviceAnalysis* device);

}  // namespace fragtrace::analyzer
