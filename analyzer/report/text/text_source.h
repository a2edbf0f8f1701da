// The program of a trace and how it ended, as text and as JSON.
#pragma once

#include "analyzer/trace/process_end.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Text like "ended normally", "exit code 1", "SIGTERM".
std::string ending_text(const ProcessEnd& end);
std::string ending_text(const Timeline& timeline);

// Sentences about what an imported recording does not contain. Empty for traces and snapshots.
std::vector<std::string> missing_in_import(const Timeline& timeline);

// Name in the JSON, for example "normal". See `ended` in docs/schema/common.json.
const char* ending_name(Ending ending);

// The object `ending` of the JSON: {kind, code, signal}.
nlohmann::ordered_json ending_json(const ProcessEnd& end);

// A command line as a user would type it: programs and scripts without their folders, shortened.
std::string command_text(std::string_view line);

}  // namespace fragtrace::analyzer
