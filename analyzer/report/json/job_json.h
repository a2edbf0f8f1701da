// The view of a job as JSON (docs/schema/job.json).
#pragma once

#include "analyzer/analysis/job/job_view.h"

#include <string>

namespace fragtrace::analyzer {

// `folder` is empty if files were given.
std::string job_json(const std::string& folder, const Job& job, const JobView& view);

}  // namespace fragtrace::analyzer
