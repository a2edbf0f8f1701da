// Makes pools and devices for replays of an analysed device.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

// The pool and device of the recorded run. The device refuses the recorded refusals again.
Result<ReplaySetup> recorded_setup(const DeviceAnalysis& device);

// A pool on a card of `candidate`'s size, for a replay with other settings.
Result<ReplaySetup> candidate_setup(const DeviceAnalysis& device, const Candidate& candidate);

}  // namespace fragtrace::analyzer
