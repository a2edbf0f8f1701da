// The remedies that people are told to try, other than settings, as rows; what they cost; which
// rows the program could not use; and which combinations are worth a replay.
#pragma once

#include "analyzer/analysis/whatif/step_ends.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// What remedies are derived from.
struct RemedyPlan {
    StepEnds steps;
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

// ---- what a row costs -----------------------------------------------------------------------

// Means of the recorded calls of one kind, in ns; 0 = not measured.
struct DriverTimes {
    double alloc_ns = 0;
    double free_ns = 0;
    double map_ns = 0;
    double unmap_ns = 0;
};

// Waits for the whole device: a cudaFree, an empty_cache() call, a retry.
std::uint64_t synchronisations(const WhatIfRow& row);
RowCost cost_of(const WhatIfRow& row, const WhatIfRow& recorded, const DriverTimes& times);

// ---- whether the program could use it ---------------------------------------------------------

// What the trace shows that rules a row out.
struct Obstacles {
    EventIndex shared = kNoEvent;        // a pointer of this process was shared by IPC
    EventIndex graph = kNoEvent;         // a CUDA graph's pool was used, or its memory
    EventIndex private_pool = kNoEvent;  // a torch.cuda.MemPool was used
    EventIndex settings = kNoEvent;      // the program sets the allocator's settings itself
    std::string sleep_module;            // gives memory up while blocks live in it
    std::string registered_module;       // registers device memory with a network card
    std::string torch_version;
};

Obstacles find_obstacles(const Timeline& timeline, DeviceId device);
// Sets usable and usable_reason of rows of PyTorch's own pool and of caching off.
void judge_use(const Obstacles& obstacles, const std::string& recorded_config, WhatIfRow* row);

// ---- combinations -----------------------------------------------------------------------------

// One round of a greedy search: the best row so far, with one more change that no part of it is of
// the kind of, the two best values of each kind. Empty: nothing to add. `rows` are all rows so far,
// any order.
std::vector<Candidate> combine(const std::vector<WhatIfRow>& rows,
                               const WhatIfRow& recorded,
                               const SweepContext& context);
// The best of the rows that the program could use; nullptr without any.
const WhatIfRow* best_row(const std::vector<WhatIfRow>& rows, const WhatIfRow& recorded);
// "expandable_segments", "roundup_power2_divisions", ... of a single setting; else empty.
std::string_view setting_key(std::string_view config);
// Those of all settings of `config`, which must outlive them.
std::set<std::string_view> setting_keys(std::string_view config);

}  // namespace fragtrace::analyzer
