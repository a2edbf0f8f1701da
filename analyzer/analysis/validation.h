// Whether every placement of a replay, or of a planned placement, is right.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/replay/validation/plan_check.h"
#include "analyzer/replay/validation/replay_check.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

struct ReplayValidation {
    ReplayCheck check;
    bool streams_apart = false;  // the pool keeps the blocks of streams apart, which was checked
};

// Errors: kUsage where the pool has no placements to check; as of make_pool().
Result<ReplayValidation> validate_replay(const DeviceAnalysis& device, const Candidate& candidate);

}  // namespace fragtrace::analyzer
