// Groups of equal processes of a job and their differences, in text.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/text/job_rows.h"

namespace fragtrace::analyzer {

// The rows "equal" and "differs".
JobRows group_rows(const Job& job, const JobView& view, JobReader reader);

}  // namespace fragtrace::analyzer
