// Pages of traces, as fraganalyze writes them, and what the record has at their moments.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <string>

namespace fragtrace::page_test {

// The page of a random trace with private pools, or with expandable segments, and as JSON at
// `moments_file` the recorded state after each of its events: a list of time_ns, requested,
// allocated, pending, reserved, releasable and other bytes.
analyzer::PageData recorded_page(bool expandable, const std::string& moments_file);

}  // namespace fragtrace::page_test
