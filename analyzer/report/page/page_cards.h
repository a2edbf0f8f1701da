// The cards of the page: the state at a failed request, a retry or the peak, which code holds the
// memory, and what would have helped. The words come from the analysis. Nothing is judged here.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/memory_lives.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_stacks.h"

namespace fragtrace::analyzer {

// Adds cards in ascending order of time, and a marker for each. `blocks` is MemoryLives::index.
void add_cards(const Analysis& analysis,
               const DeviceAnalysis& device,
               const BirthIndex& blocks,
               PageStacks* stacks,
               PageDevice* page);

}  // namespace fragtrace::analyzer
