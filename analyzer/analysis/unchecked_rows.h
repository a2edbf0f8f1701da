// What-if replays of an input that does not show the pool that served its requests.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/replay/script.h"

namespace fragtrace::analyzer {

// The script without the requests that failed. On a card of unknown size every replay would serve
// them, whatever their size.
ReplayScript without_failures(const ReplayScript& script);

// If the recorded segments are unknown, no row is the recorded run, and an estimate says that no
// replay could be checked. Call it for each row after classify_row().
void mark_unchecked(const RunFigures& recorded, WhatIfRow* row);

}  // namespace fragtrace::analyzer
