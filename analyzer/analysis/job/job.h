// The processes of a job.
#pragma once

#include "analyzer/analysis/job/process_summary.h"

#include <vector>

namespace fragtrace::analyzer {

struct Job {
    // After arrange(): by generation and rank; processes without a rank come last.
    std::vector<ProcessSummary> processes;
    std::vector<UnreadableTrace> unreadable;
};

// Joins the files of each recording to one process, gives ranks that helper processes inherited
// back to their ancestors, and sorts. Merge summaries before, and arrange them last.
void arrange(Job* job);

// Fills told_apart_by. arrange() calls it; call it again for a part of the processes.
void tell_apart(std::vector<ProcessSummary>* processes);

// Processes without a known generation belong to the first, 0.
int generation_of(const ProcessSummary& process);
bool has_generations(const Job& job);

}  // namespace fragtrace::analyzer
