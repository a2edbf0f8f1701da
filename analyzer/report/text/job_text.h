// The view of a job for a terminal: which process failed first and why, what became of the others,
// groups of equal processes and what makes others differ, card and setting for all, shared cards,
// and a table of the processes.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// "rank 3 of 4 ran out of memory first", "rank 1 of 2 failed first: SIGSEGV".
std::string first_failure_text(const Job& job, const FirstFailure& failure);

std::string job_text(const Job& job, const JobView& view, const Terminal& terminal);

}  // namespace fragtrace::analyzer
