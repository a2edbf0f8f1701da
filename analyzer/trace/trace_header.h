// A trace's file, with its first bytes checked.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

struct OpenTrace {
    InputFile file;
    TraceHeader header;
};

// Errors (kInput): cannot be opened; empty, foreign, cut off, of a newer version or another byte
// order, damaged.
Result<OpenTrace> open_trace(const std::string& path);

}  // namespace fragtrace::analyzer
