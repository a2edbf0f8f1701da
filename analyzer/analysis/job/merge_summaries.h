// Merges summaries of processes (process_summary.h).
#pragma once

#include "analyzer/analysis/job/process_summary.h"

#include <vector>

namespace fragtrace::analyzer {

// Keeps one summary per process, of those with equal identity the one that knows most, with the
// analysis of another one if that has the same events and explains more. The result is sorted by
// rank, process and identity, and does not depend on the order of the input.
std::vector<ProcessSummary> merged(std::vector<ProcessSummary> summaries);

// Sorted, each file once, without those whose file is among the processes: such a trace can be read
// now.
std::vector<UnreadableTrace> merged(std::vector<UnreadableTrace> unreadable,
                                    const std::vector<ProcessSummary>& processes);

}  // namespace fragtrace::analyzer
