// Micro-batches: gradients are added up over several passes of the model before the optimizer's
// step. The step is the iteration, its parts recur inside of it.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <vector>

namespace fragtrace::analyzer {

// Of `begins`, ascending events at which recurring stretches begin, those that begin a step: the
// first, and each that is the first after an optimizer's requests. All of them where most steps
// have one part, or no optimizer asks for memory. docs/metrics.md, Iterations.
std::vector<EventIndex> join_parts_of_steps(const Timeline& timeline,
                                            const Requests& requests,
                                            std::vector<EventIndex> begins);

}  // namespace fragtrace::analyzer
