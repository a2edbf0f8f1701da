// The lanes above the page's chart: iterations and the program's phases.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"
#include "analyzer/report/page/page_data.h"

namespace fragtrace::analyzer {

inline constexpr std::size_t kMostPagePhases = 100'000;

// Threads and depths beyond six share the last lane, where overlapping phases are one range.
void add_phases(const Timeline& timeline, const Iterations& iterations, PageDevice* page);

// If there are more phases, short neighbours of a lane become one range with their number and
// names. `phases` ascend by start. Outside the last lane those of a lane do not overlap.
void limit_phases(std::vector<PagePhase>* phases, std::size_t most);

}  // namespace fragtrace::analyzer
