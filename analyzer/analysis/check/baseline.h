// Figures of an earlier run to hold a new one against, from the JSON that summarize or report
// wrote.
#pragma once

#include "analyzer/analysis/metrics/run_figures.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <map>
#include <string>

namespace fragtrace::analyzer {

// By the device's index. Only what a run is held against is read: peaks of reserved and allocated
// memory, retries, out-of-memories, allocated segments.
using Baseline = std::map<std::uint64_t, RunFigures>;

// Errors (kInput): no such file, no JSON (with the byte), no JSON of summarize or report, another
// schema.
Result<Baseline> read_baseline(const std::string& path);

}  // namespace fragtrace::analyzer
