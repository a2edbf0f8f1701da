// One page of several processes: some whole, the others as lines.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {

// Of more processes than these, or of more blocks than a page has room for, these are whole on it.
inline constexpr std::size_t kMostWholeProcesses = 8;

// Analyses one process after the other and writes the page to `request.html`. A process whose
// analysis fails is a line, and is added to the job's unreadable traces. Fails, and writes nothing,
// where no process has used a device.
Status write_job_page(const JobRequest& request, Job* job);

}  // namespace fragtrace::analyzer
