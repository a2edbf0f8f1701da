// What would help all processes of a job, in text.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/text/job_rows.h"

namespace fragtrace::analyzer {

// The rows "balance", "card" and "setting".
JobRows remedy_rows(const Job& job, const JobView& view);

}  // namespace fragtrace::analyzer
