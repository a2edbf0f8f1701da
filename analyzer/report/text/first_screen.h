// The results that are known within a second or two, shown while the report is computed.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// A few lines about the recorded run, before any replay. Each fits the terminal's width.
std::string first_screen_text(const Analysis& analysis, const Terminal& terminal);

}  // namespace fragtrace::analyzer
