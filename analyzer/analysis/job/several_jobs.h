// Jobs whose traces are in one folder. Ranks of different jobs have equal numbers, so what a view
// says of "the job" would mix them.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct OneJob {
    std::string id = {};                    // JobPlace::job_id; empty = processes without one
    std::vector<std::size_t> members = {};  // indices into Job::processes of the whole
    Job job = {};                           // copies of them
};

// The jobs by the start of their first process, at last the processes without a job. Empty if no
// two jobs have the same rank of the same generation: such processes may belong to one run.
std::vector<OneJob> jobs_in(const Job& job);

// Keeps the processes of this job; "-" are those without one. Returns false and keeps all if there
// are none.
bool keep_job(const std::string& id, Job* job);

}  // namespace fragtrace::analyzer
