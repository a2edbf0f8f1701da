// Figures of an earlier run that a new run is compared with. They come from the JSON that summarize
// or report wrote.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

// The key is the device's index. Only the compared figures are read: peaks of reserved and
// allocated memory, retries, out-of-memories, allocated segments.
using Baseline = std::map<std::uint64_t, RunFigures>;

// Errors (kInput): the file does not exist, is no JSON (the error names the byte), is no JSON of
// summarize or report, or has another schema.
Result<Baseline> read_baseline(const std::string& path);

}  // namespace fragtrace::analyzer
