// Groups of equal processes of a job and their differences, in text.
#pragma once

#include "analyzer/analysis/job/job_view.h"

#include <string>

namespace fragtrace::analyzer {

// The rows "equal" and "differs".
std::string group_lines(const Job& job, const JobView& view);

}  // namespace fragtrace::analyzer
