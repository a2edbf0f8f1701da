// Why a request of a pool of the program's own failed, and which line is responsible.
#pragma once

#include "analyzer/analysis/program_pools.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

namespace fragtrace::analyzer {

// Fills `failure` of a moment whose other figures are known, and the culprit. `refused`: the driver
// refused memory for this request, so there was no room below the limit.
void explain_failure(const Timeline& timeline,
                     const ProgramPool& pool,
                     const HeapSnapshot& heap,
                     bool refused,
                     Symbolizer* symbols,
                     ProgramPoolMoment* moment);

}  // namespace fragtrace::analyzer
