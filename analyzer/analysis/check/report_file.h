// Reads JSON that summarize or report wrote.
#pragma once

#include "analyzer/support/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Returns an object with this program's schema and an array "devices". Errors (kInput): the file
// does not exist, is no JSON (the error names the byte), is no report, or has another schema.
Result<nlohmann::json> read_report_file(const std::string& path);

// The error for such a file: what is wrong, and what to do.
Error bad_report_file(const std::string& path, std::string_view what);

// False if `object` has no non-negative integer under `key`.
bool read_count(const nlohmann::json& object, const char* key, std::uint64_t* value);

}  // namespace fragtrace::analyzer
