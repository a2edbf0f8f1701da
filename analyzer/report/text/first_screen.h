// What is known within a second or two, for those who wait for the report.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// What was recorded, before anything was replayed: a few lines, each within the terminal's width.
std::string first_screen_text(const Analysis& analysis, const Terminal& terminal);

}  // namespace fragtrace::analyzer
