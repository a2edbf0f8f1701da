// fraganalyze FOLDER, or several traces: the view of a job, and one page for all processes.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <string>
#include <system_error>
#include <vector>

namespace fragtrace::analyzer {

// Prints what the processes have in common and where they differ, and a table of them; writes it as
// JSON and as a page. Fails if the folder contains no trace. If a trace cannot be read, it fails
// after all output was written.
Status report_job(const JobRequest& request, const Terminal& terminal);

// The traces, snapshots and summaries in a folder. Fails if there are none.
Result<std::vector<std::string>> recordings_of_job(const std::string& folder);

// The inputs, with the recordings in each folder instead of the folder.
Result<std::vector<std::string>> recordings_of_job(const std::vector<std::string>& inputs);

// Why a folder has nothing to read, and what to do: it names a subfolder that has traces. `failure`
// is why it cannot be read.
Error nothing_in(const std::string& folder, const std::error_code& failure);

// Explains the failures of a process and replays it, as `options` ask. Traces that are too long
// stay as they are.
Status explain_process(AnalyzeOptions options, ProcessSummary* process);

// The error if a job has no process: why its first file cannot be read, or that `path` has none.
Error no_process_in(const Job& job, const std::string& path);

// The final error if some recordings were unreadable.
Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason);

}  // namespace fragtrace::analyzer
