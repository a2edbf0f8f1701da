// fraganalyze FOLDER, or several traces: a job, one line per process, and a page of them together.
#pragma once

#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Prints a table of all processes, by rank and process, and writes it as JSON and as a page. Fails
// when the folder has no trace, and, after all that, when one of them cannot be read.
Status report_job(const JobRequest& request, const Terminal& terminal);

// The traces and snapshots in a folder, at least one.
Result<std::vector<std::string>> recordings_of_job(const std::string& folder);

// What is said at the end, where not all of them could be read.
Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason);

}  // namespace fragtrace::analyzer
