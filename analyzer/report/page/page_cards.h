// The cards of the page: what happened at a failed request, a retry or the peak, who holds the
// memory, and what would have helped. In words of the analysis; nothing is judged here.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/memory_lives.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_stacks.h"

namespace fragtrace::analyzer {

// Adds cards, ascending by time, and a marker for each. `blocks`: MemoryLives::index.
void add_cards(const Analysis& analysis,
               const DeviceAnalysis& device,
               const BlockIndex& blocks,
               PageStacks* stacks,
               PageDevice* page);

}  // namespace fragtrace::analyzer
