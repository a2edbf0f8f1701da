// Checks that every placement of a replay or of a plan is valid.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/replay/validation/plan_check.h"
#include "analyzer/replay/validation/replay_check.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

struct ReplayValidation {
    ReplayCheck check;
    // The pool keeps blocks of different streams apart, and this was checked.
    bool streams_apart = false;
};

// Errors: kUsage if the pool has no placements to check; otherwise those of make_pool().
Result<ReplayValidation> validate_replay(const DeviceAnalysis& device, const Candidate& candidate);

}  // namespace fragtrace::analyzer
