// fraganalyze FOLDER: the traces of a job, one line per process.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// Prints a table of all traces in the folder, by rank and process, and writes it as JSON to `json`
// ('-' is standard output, instead of the table; empty = no JSON). Fails when the folder has no
// trace, and, after all that, when one of them cannot be read.
Status report_job(const std::string& folder, const std::string& json, const Terminal& terminal);

}  // namespace fragtrace::analyzer
