// What is asked of a job on the command line.
#pragma once

#include "analyzer/analysis/analyze_options.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct JobRequest {
    std::string folder;               // all traces and snapshots in it; empty = those of `traces`
    std::vector<std::string> traces;  // more than one
    // Files; '-' is standard output, instead of the table; empty = none.
    std::string json;
    std::string html;
    bool summary = false;    // instead: of the process that failed first, else of the first of them
    AnalyzeOptions options;  // of the analyses that the page shows
};

}  // namespace fragtrace::analyzer
