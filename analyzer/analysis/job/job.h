// The processes of a job.
#pragma once

#include "analyzer/analysis/job/process_summary.h"

#include <cstddef>
#include <vector>

namespace fragtrace::analyzer {

struct Job {
    // After arrange(): by generation and rank; processes without a rank come last.
    std::vector<ProcessSummary> processes;
    std::vector<UnreadableTrace> unreadable;
    // If this is one of several jobs or runs (several_jobs.h): processes of the others that used
    // its cards while it ran. Their names say which job or run they are of.
    std::vector<ProcessSummary> outside = {};

    // Indices after those of `processes` are those of `outside`.
    [[nodiscard]] const ProcessSummary& at(std::size_t i) const {
        return i < processes.size() ? processes[i] : outside[i - processes.size()];
    }

    [[nodiscard]] std::size_t with_outside() const { return processes.size() + outside.size(); }
};

// Joins the files of each recording to one process, gives ranks that helper processes inherited
// back to their ancestors, and sorts. Merge summaries before, and arrange them last.
void arrange(Job* job);

// Fills told_apart_by. arrange() calls it; call it again for a part of the processes.
void tell_apart(std::vector<ProcessSummary>* processes);

// Fills outlived_failure. arrange() calls it; call it again for a part of the processes.
void find_survivors(std::vector<ProcessSummary>* processes);

// Whether both are programs of one process, which became the later one by exec.
bool same_process(const ProcessSummary& a, const ProcessSummary& b);

// Processes without a known generation belong to the first, 0.
int generation_of(const ProcessSummary& process);
bool has_generations(const Job& job);

}  // namespace fragtrace::analyzer
