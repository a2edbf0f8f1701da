// fraganalyze FOLDER, or several traces: the report of a job. One line per process, and one page
// for all of them.
#pragma once

#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Prints a table of all processes, sorted by rank and process, and writes it as JSON and as a page.
// Fails if the folder contains no trace. If a trace cannot be read, it fails after all output was
// written.
Status report_job(const JobRequest& request, const Terminal& terminal);

// The traces and snapshots in a folder. Fails if there are none.
Result<std::vector<std::string>> recordings_of_job(const std::string& folder);

// The final error if some recordings were unreadable.
Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason);

}  // namespace fragtrace::analyzer
