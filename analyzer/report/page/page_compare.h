// Fills the part of the page that compares two runs.
#pragma once

#include "analyzer/report/page/page_data.h"

namespace fragtrace::analyzer {

// Everything except where the runs and devices are in the file.
PageComparison compared_runs(const Comparison& comparison);

}  // namespace fragtrace::analyzer
