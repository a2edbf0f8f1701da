// One page for several processes: some completely, the others only as rows.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {

// If there are more processes, or more blocks than a page has room for, only this many are shown
// completely.
inline constexpr std::size_t kMostWholeProcesses = 8;

// Analyses the processes one by one and writes the page to `request.html`. If the analysis of a
// process fails, the process gets only a row and is added to the job's unreadable traces. Fails and
// writes nothing if no process used a device.
Status write_job_page(const JobRequest& request, Job* job);

}  // namespace fragtrace::analyzer
