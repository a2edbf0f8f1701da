// Reads any input of fraganalyze: a trace, a snapshot of PyTorch's allocator, or a recording of
// another tool (analyzer/imports). The content decides what a file is, not its name.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace fragtrace::analyzer {

struct InputOptions {
    // The PyTorch release whose rules a snapshot follows, because the snapshot does not name it;
    // empty = derived from the snapshot's keys.
    std::string torch_version;
    bool absorb_ring = false;  // see ReadOptions
    // False: the caller replays the recording and corrects the block sizes of a snapshot
    // (replay/block_sizes.h).
    bool replay_sizes = true;
};

// Errors (kInput): as read_trace(), read_snapshot() and ImportFormat::read().
Result<Timeline> read_input(const std::string& path, const InputOptions& options = {});

// Whether the file is a trace with more events than that. Reads only the headers of its chunks.
// Returns false also if the file cannot be read.
bool is_longer_than(std::uint64_t events, const std::string& path);

// Returns false also if the file cannot be read.
bool is_snapshot(const std::string& path);

// The format in a sentence, such as "RMM log"; empty if the file is not an import or cannot be
// read.
std::string import_name(const std::string& path);

// Returns the traces, snapshots and imports in a folder, sorted by name. Traces and snapshots are
// recognised by the endings of their names, imports by ending and content.
std::vector<std::string> recordings_in(const std::string& folder, std::error_code* error);

}  // namespace fragtrace::analyzer
