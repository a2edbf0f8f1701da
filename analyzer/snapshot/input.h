// Reads any input of fraganalyze: a trace, or a snapshot of PyTorch's allocator.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <string>
#include <system_error>
#include <vector>

namespace fragtrace::analyzer {

// Errors (kInput): as read_trace() and read_snapshot(). `torch_version` selects the PyTorch release
// whose rules a snapshot follows, because the snapshot does not name it; empty = derived from the
// snapshot's keys. `absorb_ring`: see ReadOptions.
Result<Timeline> read_input(const std::string& path,
                            const std::string& torch_version = {},
                            bool absorb_ring = false);

// Returns false also if the file cannot be read.
bool is_snapshot(const std::string& path);

// Returns the traces and snapshots in a folder, recognised by their file name endings, sorted by
// name.
std::vector<std::string> recordings_in(const std::string& folder, std::error_code* error);

}  // namespace fragtrace::analyzer
