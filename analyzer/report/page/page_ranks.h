// The processes of a job as lines of the page: all of them, whether they are in the file whole or
// not.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/report/page/page_data.h"

#include <cstddef>
#include <map>
#include <utility>

namespace fragtrace::analyzer {

// Index of a device in the file, by its process in the job and its number there.
using PagePlaces = std::map<std::pair<std::size_t, DeviceId>, std::size_t>;

// A line per process and device, by rank, and the traces that cannot be read.
void add_ranks(const Job& job, const PagePlaces& places, PageData* data);

}  // namespace fragtrace::analyzer
