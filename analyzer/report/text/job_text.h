// The view of a job for a terminal: which process failed first and why, what became of the others,
// groups of equal processes and what makes others differ, card and setting for all, shared cards,
// and a table of the processes.
#pragma once

#include "analyzer/analysis/job/job_view.h"
#include "analyzer/analysis/job/several_jobs.h"
#include "analyzer/report/text/job_rows.h"
#include "analyzer/support/terminal.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The rows of the view, without the table of the processes. The page has all rows of the terminal,
// and rows that a terminal leaves out.
JobRows job_rows(const Job& job, const JobView& view, JobReader reader = JobReader::kTerminal);

std::string job_text(const Job& job, const JobView& view, const Terminal& terminal);

// One line per trace that cannot be read; job_text() ends with these.
std::string unreadable_text(const Job& job, const Terminal& terminal);

// "job 4711 (8 traces)".
std::string job_heading(const OneJob& one);

// A line per job with its first failure, and how to look at one job. `folder`: as the user gave it;
// empty = several traces were given.
std::string jobs_table(const std::vector<OneJob>& jobs, const std::string& folder);

}  // namespace fragtrace::analyzer
