// What-if replays of an input that does not show the pool that served its requests.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/analysis/whatif/whatif_row.h"

namespace fragtrace::analyzer {

// If the recorded segments are unknown, no row is the recorded run, and an estimate says that no
// replay could be checked. Call it for each row after classify_row().
void mark_unchecked(const RunFigures& recorded, WhatIfRow* row);

}  // namespace fragtrace::analyzer
