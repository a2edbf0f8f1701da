// Turns a trace file into an Analysis: reading, recorded state, fidelity, verdicts, what-if.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/analyze_options.h"
#include "analyzer/support/result.h"

#include <memory>
#include <string>

namespace fragtrace::analyzer {

Result<std::unique_ptr<Analysis>> analyze(const std::string& path, const AnalyzeOptions& options);

}  // namespace fragtrace::analyzer
