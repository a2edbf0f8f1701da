// The remedies other than settings that people are advised to try, as rows.
#pragma once

#include "analyzer/analysis/whatif/iteration_ends.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Facts from which remedies are derived.
struct RemedyPlan {
    IterationEnds iterations;
    std::uint64_t every_steps = 0;  // adds a row with empty_cache() every so many steps; 0 = 10
    std::vector<EventIndex>
        long_lived;  // allocations of blocks that live through two steps or more
    // All allocations of lines whose blocks are nearly all long-lived.
    std::vector<EventIndex> their_lines;
    // Allocations of the culprit's live blocks, at the failure or the peak.
    std::vector<EventIndex> culprit;
    std::vector<EventIndex> culprit_line;  // all allocations of the culprit's line
    std::string culprit_label;             // empty: no line stands out
};

// Fills long_lived and their_lines from the lifetimes of blocks. Without steps, a block is
// long-lived if it lives through half of all requests.
void find_long_lived(const Timeline& timeline, const ReplayScript& script, RemedyPlan* plan);
// All requests of the script from the same stack as `example`, ascending. Empty if it has no stack.
std::vector<EventIndex> requests_of_line(const Timeline& timeline,
                                         const ReplayScript& script,
                                         EventIndex example);

// `others_bytes`: memory that other holders have and could free.
std::vector<Candidate> remedy_candidates(const ReplayScript& script,
                                         const SweepContext& context,
                                         const RemedyPlan& plan,
                                         std::uint64_t total_bytes,
                                         std::uint64_t others_bytes);

// Adjusts the class of a row whose remedy is not a setting, beyond the class of its replay.
void classify_remedy(const SweepContext& context, WhatIfRow* row);

}  // namespace fragtrace::analyzer
