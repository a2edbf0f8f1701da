// Reads whatever fraganalyze takes: a trace, or a snapshot of PyTorch's allocator.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Errors (kInput) as of read_trace() and read_snapshot(). `torch_version`: the release whose rules
// a snapshot follows, which does not name it; empty = as its keys tell.
Result<Timeline> read_input(const std::string& path, const std::string& torch_version = {});

}  // namespace fragtrace::analyzer
