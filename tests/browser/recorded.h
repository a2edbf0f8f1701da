// Pages of traces, as fraganalyze writes them, and the recorded state at each moment.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <string>

namespace fragtrace::page_test {

// The page of a random trace with private pools, or with expandable segments. `moments_file` gets
// the recorded state after each event as JSON: a list of time_ns, requested, allocated, pending,
// reserved, releasable and other bytes.
analyzer::PageData recorded_page(bool expandable, const std::string& moments_file);

}  // namespace fragtrace::page_test
