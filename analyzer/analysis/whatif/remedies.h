// The remedies that people are told to try, other than settings, as rows.
#pragma once

#include "analyzer/analysis/whatif/iteration_ends.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// What remedies are derived from.
struct RemedyPlan {
    IterationEnds iterations;
    std::uint64_t every_steps = 0;  // one more row: empty_cache() every so many steps; 0 = 10
    std::vector<EventIndex>
        long_lived;  // allocations of blocks that live through two steps or more
    std::vector<EventIndex> their_lines;  // all allocations of the lines that make hardly any other
    std::vector<EventIndex> culprit;      // allocations of the culprit's live blocks at that moment
    std::vector<EventIndex> culprit_line;  // all allocations of the culprit's line
    std::string culprit_label;             // empty: nobody in particular
};

// Fills in what follows from the lifetimes: long_lived, their_lines. Without steps, a block is
// long-lived that lives through half of all requests.
void find_long_lived(const Timeline& timeline, const ReplayScript& script, RemedyPlan* plan);
// All requests of the script from the same stack as `example`, ascending.
std::vector<EventIndex> requests_of_line(const Timeline& timeline,
                                         const ReplayScript& script,
                                         EventIndex example);

// `others_bytes`: what other holders have, and could give up.
std::vector<Candidate> remedy_candidates(const ReplayScript& script,
                                         const SweepContext& context,
                                         const RemedyPlan& plan,
                                         std::uint64_t total_bytes,
                                         std::uint64_t others_bytes);

// Of a remedy other than settings: what its class is beyond that of its replay.
void classify_remedy(const SweepContext& context, WhatIfRow* row);

}  // namespace fragtrace::analyzer
