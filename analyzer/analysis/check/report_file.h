// JSON that summarize or report wrote, read back.
#pragma once

#include "analyzer/support/result.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// An object with this program's schema and an array "devices". Errors (kInput): no such file, no
// JSON (with the byte), no report, another schema.
Result<nlohmann::json> read_report_file(const std::string& path);

// What the reader of such a file says of it, and what to do.
Error bad_report_file(const std::string& path, std::string_view what);

// False where `object` has no such count.
bool read_count(const nlohmann::json& object, const char* key, std::uint64_t* value);

}  // namespace fragtrace::analyzer
