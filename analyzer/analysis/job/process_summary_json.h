// Process summaries as a file: one JSON object with one summary per line (docs/json.md,
// docs/schema/process_summaries.json). One file has one summary or those of thousands of processes,
// and the traces that cannot be read, with their reasons.
#pragma once

#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The format of the file. Files of other schemas are refused.
inline constexpr std::uint64_t kSummarySchema = 1;

// Of UnreadableTrace::reason, which begins with a path.
inline constexpr std::size_t kMostReasonBytes = 1000;

// A summary takes at most this in a file. If a process used many devices, its summary has fewer
// bins and lines.
inline constexpr std::size_t kMostSummaryBytes = 20'000;

// The object of one process, on one line without a line end.
std::string to_json_text(const ProcessSummary& process);

// Writes a file with these summaries (write_output()).
Status write_summaries(const std::string& path,
                       const std::vector<ProcessSummary>& processes,
                       const std::vector<UnreadableTrace>& unreadable = {});

}  // namespace fragtrace::analyzer
