// The page: one self-contained HTML file that draws an analysis, without network.
#pragma once

#include "analyzer/report/page_data.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// The document. Errors: columns of unequal length, blocks out of order, indices out of range.
Result<std::string> render_page(const PageData& data);

}  // namespace fragtrace::analyzer
