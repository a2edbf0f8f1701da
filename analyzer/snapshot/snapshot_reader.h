// Reads a PyTorch memory snapshot, a pickle, plain or compressed by gzip.
//
// Untrusted bytes: see pickle.h. Dicts are recognised by their keys, wherever they lie.
#pragma once

#include "analyzer/snapshot/snapshot.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Does the file begin as a pickle, or as a pickle in gzip?
bool looks_like_snapshot(const InputFile& file);

// Errors (kInput): damaged, hostile, a pickle of something else. `path` is for their text.
Result<Snapshot> read_snapshot(const std::string& path, const InputFile& file);

}  // namespace fragtrace::analyzer
