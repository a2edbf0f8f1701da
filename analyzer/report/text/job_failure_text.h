// The first failures of a job, what became of the other processes, and the ranks without a trace,
// in text.
#pragma once

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/analysis/job/job_view.h"
#include "analyzer/report/text/job_rows.h"

#include <string>

namespace fragtrace::analyzer {

// "rank 3 of 4 ran out of memory first", "rank 1 of 2 failed first: SIGSEGV".
std::string first_failure_text(const Job& job, const FirstFailure& failure);

// The text for a job without a first failure. Pools of the program's own may have failed.
std::string no_failure_text(const Job& job);

// The first failure of each generation with its explanation; that of the whole job comes first.
JobRows generation_rows(const Job& job, const JobView& view);

std::string missing_text(const Job& job, const JobView& view);

}  // namespace fragtrace::analyzer
