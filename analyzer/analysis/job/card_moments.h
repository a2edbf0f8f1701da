// What the processes of a shared card held at the moment that the job view shows, from their
// traces: exact bytes, lines and phase. A summary alone does not have these.
#pragma once

#include "analyzer/analysis/job/job_view.h"

namespace fragtrace::analyzer {

// Reads the traces that are at hand, of the first cards and of the users with most memory. Then
// sorts the users by what they really held. Users stay as they are if their trace is very long,
// consists of several files, or cannot be read.
void add_moments(const Job& job, JobView* view);

}  // namespace fragtrace::analyzer
