// What a trace is of, in words and in JSON: the program, and how it ended.
#pragma once

#include "analyzer/model/timeline.h"

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "ended normally".
const char* ending_text(Ending ending);

// "normal": the name in JSON, see docs/json.md.
const char* ending_name(Ending ending);

// A command line as one would have typed it: programs and scripts without their folders; shortened.
std::string command_text(std::string_view line);

}  // namespace fragtrace::analyzer
