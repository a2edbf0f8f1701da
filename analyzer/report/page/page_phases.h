// The lanes above the page's chart: iterations, and the phases that the program marked.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/timeline.h"
#include "analyzer/report/page/page_data.h"

namespace fragtrace::analyzer {

// Of more phases than this the longest stay; the page says how many do not.
inline constexpr std::size_t kMostPagePhases = 100'000;

void add_phases(const Timeline& timeline, const Iterations& iterations, PageDevice* page);

}  // namespace fragtrace::analyzer
