// Finds the cheapest way to return memory to the driver. Whole segments, or whole pages of
// expandable segments, are emptied until enough is free.
//
// Solved exactly as a minimum-cost knapsack. A block that spans several pages is freed once for all
// of them. So the pages of one range are visited in order, and the knapsack remembers whether the
// block that crosses into the next page is freed.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct Cover {
    bool found = false;
    bool approximate = false;           // too large to solve exactly: found by a greedy search
    std::uint64_t bytes_to_free = 0;    // live bytes that must be freed
    std::uint32_t segments = 0;         // whole segments that are emptied
    std::uint32_t pages = 0;            // pages of expandable segments that are emptied
    double equal_sets = 0;              // number of equally cheap sets of blocks, this one included
    std::vector<std::uint32_t> blocks;  // indices into HeapSnapshot::blocks, ascending
};

// Limits the work for exact answers in one analysis to about a second, whatever the trace has.
// Answers that would need more work are approximate.
struct CoverBudget {
    std::uint64_t cells = 128'000'000;
};

// Ignores segments that their pool may not release. `missing_bytes` > 0. Without a budget, a fixed
// limit applies to this single answer.
Cover cheapest_cover(const HeapSnapshot& heap, std::uint64_t missing_bytes, CoverBudget* budget);

}  // namespace fragtrace::analyzer
