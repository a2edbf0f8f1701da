// fraganalyze FOLDER: the traces and snapshots of a job, one line per process.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Prints a table of all traces and snapshots in the folder, by rank and process, and writes it as
// JSON to `json`
// ('-' is standard output, instead of the table; empty = no JSON). Fails when the folder has no
// trace, and, after all that, when one of them cannot be read.
Status report_job(const std::string& folder, const std::string& json, const Terminal& terminal);

// The traces and snapshots in a folder, at least one.
Result<std::vector<std::string>> recordings_of_job(const std::string& folder);

// What is said at the end, where not all of them could be read.
Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason);

}  // namespace fragtrace::analyzer
