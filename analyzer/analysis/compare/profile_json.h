// The profile of a run from JSON that summarize or report wrote.
#pragma once

#include "analyzer/analysis/compare/profile.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Errors (kInput): no JSON (with the byte), no JSON of summarize or report, another schema, a
// figure that is missing.
Result<RunProfile> read_profile_json(const std::string& path);

// Whether a file begins as a JSON object does; false where it cannot be read.
bool looks_like_json(const std::string& path);

}  // namespace fragtrace::analyzer
