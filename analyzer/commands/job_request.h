// The command-line request for a report on a job.
#pragma once

#include "analyzer/analysis/analyze_options.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct JobRequest {
    std::string folder;               // all traces and snapshots in it; empty = use `traces`
    std::vector<std::string> traces;  // at least two
    // Output files; empty = none. '-' means standard output and replaces the table.
    std::string json;
    std::string html;
    // Instead: the summary of the process that failed first, else of the first one.
    bool summary = false;
    AnalyzeOptions options;  // for the analyses that the page shows
};

}  // namespace fragtrace::analyzer
