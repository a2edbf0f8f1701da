// The command-line request for a report on a job.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/read_job.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct JobRequest {
    std::string folder;  // if `traces` is one folder: this folder
    // Traces, snapshots, files of summaries, and folders of them. At least two, or one such file or
    // folder.
    std::vector<std::string> traces;
    std::string job_id;  // only the processes of this job; "-" = those without one; empty = all
    // Output files; empty = none. '-' means standard output and replaces the table.
    std::string json;
    std::string html;
    bool sources = false;  // copy lines of source code into the page
    // Instead: the summary of the process that failed first, else of the first one.
    bool summary = false;
    AnalyzeOptions options;  // for the analyses of single processes
    SummaryCache cache = SummaryCache::kNever;
};

}  // namespace fragtrace::analyzer
