// Ranges that libraries mark themselves (NVTX). They describe what a library did, not which part of
// the program ran, so they are kept apart from the program's phases.
#pragma once

#include "analyzer/model/timeline.h"

#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Returns the library that marked a range, from the range's name ("DOMAIN: MESSAGE" as the recorder
// writes it). Returns an empty string for ranges of the program itself. docs/metrics.md, Phases,
// lists the domains.
std::string_view library_of_range(std::string_view name);

// For each phase of the timeline: whether a library marked it. Examines each distinct name once.
std::vector<bool> library_phases(const Timeline& timeline);

}  // namespace fragtrace::analyzer
