// What must be said with a result: assumptions that were made, and what is wrong with the trace.
#pragma once

#include "analyzer/analysis/analysis.h"

namespace fragtrace::analyzer {

// Fills assumptions and warnings of an analysis that is complete otherwise.
void add_remarks(Analysis* analysis);

}  // namespace fragtrace::analyzer
