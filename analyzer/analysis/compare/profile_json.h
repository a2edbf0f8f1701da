// Reads the profile of a run from JSON that summarize or report wrote.
#pragma once

#include "analyzer/analysis/compare/profile.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Errors (kInput): the file is no JSON (the error names the byte), is no JSON of summarize or
// report, has another schema, or lacks a figure.
Result<RunProfile> read_profile_json(const std::string& path);

// True if the file's first character, after white space, is '{'. False if the file cannot be read.
bool looks_like_json(const std::string& path);

}  // namespace fragtrace::analyzer
