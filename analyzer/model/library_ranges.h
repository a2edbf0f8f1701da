// Ranges that libraries mark of their own accord (NVTX): they say what a library did, not what part
// of the program ran, and stand beside the program's phases, not among them.
#pragma once

#include "analyzer/model/timeline.h"

#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// The library of a range by its name, "DOMAIN: MESSAGE" as the recorder writes it; empty for the
// program's own. docs/metrics.md, Phases, lists the domains.
std::string_view library_of_range(std::string_view name);

// Per phase of the timeline whether a library marked it. Each name is looked at once.
std::vector<bool> library_phases(const Timeline& timeline);

}  // namespace fragtrace::analyzer
