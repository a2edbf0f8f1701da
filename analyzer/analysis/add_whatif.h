// Replays an analysed device with other settings, bounds, pools and cards.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

// Why the rows would say nothing: the run has no requests that a replay could change. Empty: they
// do say something.
std::string why_no_whatif(const DeviceAnalysis& device);

// Fills the rows that `options` asks for. `device->no_whatif` must be set. The replays are added to
// `known`.
Status add_whatif(const AnalyzeOptions& options, KnownReplays* known, DeviceAnalysis* device);

}  // namespace fragtrace::analyzer
