// One page for several processes: some completely, the others only as rows.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/commands/job_request.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// If there are more processes or devices, or more blocks than a page has room for, only this many
// are shown completely.
inline constexpr std::size_t kMostWholeProcesses = 8;
inline constexpr std::size_t kMostWholeDevices = 64;

// With more processes than this, the processes shown completely have at most kBlocksOfLargeJob
// blocks together, so that the page stays below 10 MB. The first one chosen may have more.
inline constexpr std::size_t kLargeJob = 64;
inline constexpr std::uint64_t kBlocksOfLargeJob = 900'000;

// The processes that a page of the job shows completely, by these limits.
std::vector<std::size_t> whole_on_page(const Job& job);

// Analyses the processes one by one and writes the page, with the view of the job, to
// `request.html`. If the analysis of a
// process fails, the process gets only a row and is added to the job's unreadable traces. Fails and
// writes nothing if no process used a device.
Status write_job_page(const JobRequest& request, const JobView& view, Job* job);

}  // namespace fragtrace::analyzer
