// The summary of a trace that is too long to be explained when its run ends.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// First moves the ring of an ended process into its trace. Errors are kInput, as in
// summarize_trace().
Result<std::string> summarize_long_trace(const std::string& path, const Terminal& terminal);

}  // namespace fragtrace::analyzer
