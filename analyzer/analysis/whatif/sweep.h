// What-if: replays the recorded requests with other settings, capacities and pools, in parallel.
//
// Each row is a full replay, never a rule of thumb.
#pragma once

#include "analyzer/analysis/whatif/equal_replays.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/replay/script.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace fragtrace::analyzer {

// The event at the right end of every row's curve.
EventIndex last_replayed_event(const ReplayScript& script);

// Sets whether the row is the recorded run, and its class. The class depends on where the row's
// replay diverges from the recorded run.
void classify_row(const SweepContext& context, WhatIfRow* row);

// Replays of PyTorch pools by earlier sweeps of the same script with the same context.
struct KnownReplays {
    std::vector<WhatIfRow> rows;       // not classified
    std::vector<ReplayLimits> limits;  // one per row
};

// Replays every candidate on `threads` threads (0 = all cores). If any candidate has invalid
// settings, the whole call fails. Worker threads call `progress(done, all)`, one at a time. A
// candidate whose replay is in `known` takes its result from there. The new replays are added.
Result<std::vector<WhatIfRow>> sweep(
    const ReplayScript& script,
    const std::vector<Candidate>& candidates,
    const SweepContext& context,
    unsigned threads = 0,
    const std::function<void(std::size_t, std::size_t)>& progress = {},
    KnownReplays* known = nullptr);

}  // namespace fragtrace::analyzer
