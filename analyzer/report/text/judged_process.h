// What an analysis adds to the summary of a process: its failures explained in words, and its
// replays.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/job/process_summary.h"

namespace fragtrace::analyzer {

void add_judgement(const Analysis& analysis, ProcessSummary* process);

}  // namespace fragtrace::analyzer
