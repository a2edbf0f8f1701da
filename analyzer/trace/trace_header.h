// An open trace file whose header has been checked.
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

// Errors (kInput): the file cannot be opened, or it is empty, foreign, cut off, damaged, of a newer
// version or of another byte order.
Result<OpenTrace> open_trace(const std::string& path);

}  // namespace fragtrace::analyzer
