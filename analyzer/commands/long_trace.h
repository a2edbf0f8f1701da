// The summary of a trace that is too long to be explained when its run ends.
#pragma once

#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// Moves the ring of a process that has ended into its trace first. Errors (kInput) as of
// summarize_trace().
Result<std::string> summarize_long_trace(const std::string& path, const Terminal& terminal);

}  // namespace fragtrace::analyzer
