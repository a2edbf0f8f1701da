#include "analyzer/commands/long_trace.h"

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/report/text/long_trace.h"
#include "analyzer/trace/event_stream.h"

namespace fragtrace::analyzer {

Result<std::string> summarize_long_trace(const std::string& path, const Terminal& terminal) {
    if (const auto taken_over = take_over_ring(path); !taken_over) {
        return taken_over.error();
    }
    const Result<TraceSummary> summary = summarize_trace(path, false);
    if (!summary) {
        return summary.error();
    }
    return long_trace_text(*summary, path, terminal);
}

}  // namespace fragtrace::analyzer
