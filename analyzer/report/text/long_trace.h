// The summary of a trace that is too long to be explained when its run ends. It contains only
// figures, and its memory use does not grow with the trace's length.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// `summary` is the summary of the trace file `path`.
std::string long_trace_text(const TraceSummary& summary,
                            const std::string& path,
                            const Terminal& terminal);

}  // namespace fragtrace::analyzer
