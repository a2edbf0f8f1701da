// Micro-batches: gradients are summed over several passes of the model before the optimizer's step.
// An iteration is the whole step, not one of its passes.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <vector>

namespace fragtrace::analyzer {

// `begins` are ascending events at which recurring stretches begin. Returns those that begin a
// step: the first one, and each first one after an optimizer's requests. Returns all of them if
// most steps have one pass, or if no optimizer requests memory. docs/metrics.md, Iterations.
std::vector<EventIndex> join_parts_of_steps(const Timeline& timeline,
                                            const Requests& requests,
                                            std::vector<EventIndex> begins);

}  // namespace fragtrace::analyzer
