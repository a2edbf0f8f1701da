// The lanes above the page's chart: iterations and the program's phases.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"
#include "analyzer/report/page/page_data.h"

namespace fragtrace::analyzer {

// If there are more phases, only the longest are kept. The page says how many are left out.
inline constexpr std::size_t kMostPagePhases = 100'000;

void add_phases(const Timeline& timeline, const Iterations& iterations, PageDevice* page);

}  // namespace fragtrace::analyzer
