// Names of a job's processes in text. job_rows.h finds these names in a sentence.
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

// How a process ended, or the kind of its file.
std::string end_of(const ProcessSummary& process);
// "helper of rank 3", "earlier program of rank 3"; empty for other processes.
std::string helper_text(const ProcessSummary& process);

}  // namespace fragtrace::analyzer
