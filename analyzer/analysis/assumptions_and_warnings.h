// The assumptions behind a result, and warnings about the trace.
#pragma once

#include "analyzer/analysis/analysis.h"

namespace fragtrace::analyzer {

// Fills assumptions and warnings of an analysis that is complete otherwise.
void add_assumptions_and_warnings(Analysis* analysis);

}  // namespace fragtrace::analyzer
