// What-if: the recorded requests replayed under other settings, capacities and pools, in parallel.
//
// Each row is a full replay, never a rule of thumb.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/replay/script.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace fragtrace::analyzer {

// The right end of every row's curve.
EventIndex last_replayed_event(const ReplayScript& script);

// Says whether the row is the recorded run, and what class it has: where it parts from the record.
void classify_row(const SweepContext& context, WhatIfRow* row);

// Replays every candidate on `threads` threads (0 = all cores). A candidate whose settings are not
// valid makes the whole call fail. `progress(done, all)` is called from the worker threads, one
// call at a time.
Result<std::vector<WhatIfRow>> sweep(
    const ReplayScript& script,
    const std::vector<Candidate>& candidates,
    const SweepContext& context,
    unsigned threads = 0,
    const std::function<void(std::size_t, std::size_t)>& progress = {});

}  // namespace fragtrace::analyzer
