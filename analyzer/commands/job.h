// fraganalyze FOLDER: the traces of a job, one line per process.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// Prints a table of all traces in the folder, by rank and process. Fails, after the table, when the
// folder has no trace or one of them cannot be read.
Status report_job(const std::string& folder, const Terminal& terminal);

}  // namespace fragtrace::analyzer
