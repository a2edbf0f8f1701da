// The summary of a trace that is too long to be explained when its run ends: figures alone, in
// memory that does not grow with its length.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// Errors (kInput) as of summarize_trace().
Result<std::string> long_trace_text(const std::string& path, const Terminal& terminal);

}  // namespace fragtrace::analyzer
