// Reads whatever fraganalyze takes: a trace, or a snapshot of PyTorch's allocator.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <string>
#include <system_error>
#include <vector>

namespace fragtrace::analyzer {

// Errors (kInput) as of read_trace() and read_snapshot(). `torch_version`: the release whose rules
// a snapshot follows, which does not name it; empty = as its keys tell. `absorb_ring`: as
// ReadOptions has it.
Result<Timeline> read_input(const std::string& path,
                            const std::string& torch_version = {},
                            bool absorb_ring = false);

// False also where it cannot be read.
bool is_snapshot(const std::string& path);

// The traces and snapshots in a folder, told by their names' ends, in the order of their names.
std::vector<std::string> recordings_in(const std::string& folder, std::error_code* error);

}  // namespace fragtrace::analyzer
