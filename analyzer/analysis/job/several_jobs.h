// Jobs, or runs of one job, whose traces are in one folder. Their ranks have equal numbers, so what
// a view says of "the job" would mix them.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct OneJob {
    // JobPlace::job_id; empty = processes without one. "ID-run-2" for the second run of a job,
    // "run-2" without a job id.
    std::string id = {};
    bool is_run = false;
    std::vector<std::size_t> members = {};  // indices into Job::processes of the whole
    Job job = {};                           // copies of them
};

// The jobs by the start of their first process, at last the processes without a job id. If two jobs
// have no rank in common, all processes may belong to one run, and the result is empty. If a rank
// exists twice under one job id, a process with such a rank begins another run if the earlier
// process of each rank had ended, or its rank begins again while this process runs. If a rank
// begins again while its earlier process runs, runs are told apart by their starts, if each has all
// ranks of the world size, and they began closer together than the runs. A process without a rank
// belongs to the run in which it began. Empty if there is only one job and one run.
std::vector<OneJob> jobs_in(const Job& job);

// Job::outside of jobs[of].
std::vector<ProcessSummary> outside_of(const std::vector<OneJob>& jobs, std::size_t of);

// The processes that began with the rank of another one that still ran. In the view of one job or
// run they show that the traces may be of several runs, which are not told apart.
std::vector<std::size_t> ranks_again(const Job& job);

// The job ids of the processes, sorted; "" for those without one.
std::vector<std::string> job_ids(const Job& job);

// Keeps the processes of this job: a job id, "-" for those without one, or a run as in
// jobs_in(). Returns false and keeps all if there are none.
bool keep_job(const std::string& id, Job* job);

}  // namespace fragtrace::analyzer
