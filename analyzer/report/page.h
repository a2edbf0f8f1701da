// Writes the page: one self-contained HTML file that draws an analysis, without network.
//
// The file appears whole or not at all (written beside its place, then renamed). Not thread-safe
// per path; no shared state.
#pragma once

#include "analyzer/report/page_data.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// The document. Errors: columns of unequal length, blocks out of order, indices out of range.
Result<std::string> render_page(const PageData& data);
// render_page into `path`. Errors also: the file cannot be written.
Status write_page(const PageData& data, const std::string& path);

}  // namespace fragtrace::analyzer
