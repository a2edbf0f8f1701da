// What a trace is of, in words and in JSON: the program, and how it ended.
#pragma once

#include "analyzer/trace/process_end.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "ended normally", "exit code 1", "SIGTERM".
std::string ending_text(const ProcessEnd& end);
std::string ending_text(const Timeline& timeline);

// "normal": the name in JSON, see `ended` in docs/schema/common.json.
const char* ending_name(Ending ending);

// The object `ending` of the JSON: {kind, code, signal}.
nlohmann::ordered_json ending_json(const ProcessEnd& end);

// A command line as one would have typed it: programs and scripts without their folders; shortened.
std::string command_text(std::string_view line);

}  // namespace fragtrace::analyzer
