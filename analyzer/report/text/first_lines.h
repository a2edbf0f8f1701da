// The first lines of the report, for messages of other programs.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// What happened, which line of the program is responsible, and what to change: up to three lines
// per device. Failures come first.
std::string first_lines(const Analysis& analysis, const Terminal& terminal);

}  // namespace fragtrace::analyzer
