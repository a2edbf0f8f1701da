// The lanes above the page's chart: iterations and the program's phases.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"
#include "analyzer/report/page/page_data.h"

namespace fragtrace::analyzer {

inline constexpr std::size_t kMostPagePhases = 100'000;

// Threads and depths beyond six share the last lane, where overlapping phases are one range.
void add_phases(const Timeline& timeline, const Iterations& iterations, PageDevice* page);

}  // namespace fragtrace::analyzer
