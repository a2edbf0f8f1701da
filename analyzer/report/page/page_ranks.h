// The processes of a job as rows of the page. All of them are listed, including those whose data is
// not in the file.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/page/page_data.h"

#include <cstddef>
#include <map>
#include <utility>

namespace fragtrace::analyzer {

// Index of a device in the file, by its process in the job and its device number.
using PagePlaces = std::map<std::pair<std::size_t, DeviceId>, std::size_t>;

// Adds a row per process and device, sorted by rank, the view of the job in the sentences of the
// report, and the unreadable traces.
void add_ranks(const Job& job, const JobView& view, const PagePlaces& places, PageData* data);

}  // namespace fragtrace::analyzer
