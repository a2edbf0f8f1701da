// Reads a PyTorch memory snapshot: a pickle, plain or compressed with gzip.
//
// The input is untrusted: see pickle.h. Dicts are recognised by their keys, at any depth.
#pragma once

#include "analyzer/snapshot/snapshot.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Whether the file begins like a pickle, or like a pickle in gzip.
bool looks_like_snapshot(const InputFile& file);

// Errors (kInput): damaged, malicious, or a pickle of something else. `path` appears in the
// message.
Result<Snapshot> read_snapshot(const std::string& path, const InputFile& file);

}  // namespace fragtrace::analyzer
