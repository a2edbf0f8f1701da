// Process summaries as a file: one JSON object with one summary per line (docs/json.md,
// docs/schema/process_summaries.json). One file has one summary or those of thousands of processes,
// and the traces that cannot be read, with their reasons.
#pragma once

#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// A summary takes at most this in a file. If a process used many devices, its summary has fewer
// bins and lines.
inline constexpr std::size_t kMostSummaryBytes = 20'000;

// The object of one process, on one line without a line end.
std::string to_json_text(const ProcessSummary& process);

// Writes a file with these summaries (write_output()).
Status write_summaries(const std::string& path,
                       const std::vector<ProcessSummary>& processes,
                       const std::vector<UnreadableTrace>& unreadable = {});

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
