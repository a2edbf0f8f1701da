// The assumptions that a result depends on, and warnings about the trace.
#pragma once

#include "analyzer/analysis/analysis.h"

namespace fragtrace::analyzer {

// Fills `assumptions` and `warnings`. All other parts of the analysis must be complete.
void add_assumptions_and_warnings(Analysis* analysis);

}  // namespace fragtrace::analyzer
