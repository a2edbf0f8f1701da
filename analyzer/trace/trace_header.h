// The first bytes of a trace, checked.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/support/result.h"
#include "analyzer/trace/input_file.h"

#include <string>

namespace fragtrace::analyzer {

// Errors (kInput): empty, foreign, cut off, of a newer version or another byte order, damaged.
// `path` is for their text.
Result<TraceHeader> read_trace_header(const std::string& path, const InputFile& file);

}  // namespace fragtrace::analyzer
