// The summary of a trace that is too long to be explained when its run ends: figures alone, in
// memory that does not grow with its length.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// `summary`: of the trace in the file `path`.
std::string long_trace_text(const TraceSummary& summary,
                            const std::string& path,
                            const Terminal& terminal);

}  // namespace fragtrace::analyzer
