// Reads files of process summaries. The files are untrusted.
#pragma once

#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/support/result.h"

#include <functional>
#include <string>

namespace fragtrace::analyzer {

// Whether the file begins with the keys that write_summaries() writes, with any number of a schema
// and any white space. False if it cannot be read.
bool is_summaries_file(const std::string& path);

// Reads one summary after the other, so memory depends only on the largest one. The file is
// untrusted. Errors (kInput): no such file, not a file of summaries, another schema, a summary that
// lacks a figure, is impossible or is too long.
Status read_summaries(const std::string& path,
                      const std::function<void(ProcessSummary)>& take,
                      const std::function<void(UnreadableTrace)>& take_unreadable = {});

}  // namespace fragtrace::analyzer
