// Names of a job's processes, and rows of its view, in text.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// "rank 3", "pid 4711", the file of a snapshot.
std::string name_of(const ProcessSummary& process);
// "rank 3 of generation 1" if the job has several generations.
std::string name_of(const Job& job, const ProcessSummary& process);
// "ranks 0-2, 4", "rank 3 of generation 1", "3 processes without a rank". `members` are indices
// into Job::processes.
std::string names_of(const Job& job, const std::vector<std::size_t>& members);
// The name of a process, with its program if it has no rank.
std::string called(const Job& job, const ProcessSummary& process);
// " on HOST" if the job has several hosts.
std::string on_host(const Job& job, const ProcessSummary& process);

// A row of the view; empty without a text.
std::string view_row(const char* title, const std::string& text);

}  // namespace fragtrace::analyzer
