// What must be said with a result: assumptions that were made, and what is wrong with the trace.
#pragma once

#include "analyzer/report/analysis.h"

namespace fragtrace::analyzer {

// Fills assumptions and warnings of an analysis that is complete otherwise.
void add_remarks(Analysis* analysis);

// The program asked the driver how much memory is free: it may adapt to another card.
bool reads_free_memory(const Timeline& timeline);

}  // namespace fragtrace::analyzer
