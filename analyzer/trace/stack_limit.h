// Stacks that the recorder cut: it keeps the innermost frames of each kind, up to a limit.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>

namespace fragtrace::analyzer {

// Frames of each kind that the recorder kept at most.
std::uint64_t stack_depth_limit(const Timeline& timeline);

// Events whose native or Python stack has as many frames as were kept at most: what called the
// outermost of them may be missing.
std::uint64_t events_with_cut_stacks(const Timeline& timeline);

}  // namespace fragtrace::analyzer
