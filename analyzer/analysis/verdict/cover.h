// The cheapest way to give memory back to the driver: whole segments, and whole pages of expandable
// segments, emptied until enough is there.
//
// Solved exactly as a minimum-cost knapsack. A block that reaches over several pages is freed once,
// for all of them: pages of one range are taken in their order, and the knapsack remembers whether
// the block that crosses into the next page is freed.
#pragma once

#include "analyzer/model/heap_snapshot.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct Cover {
    bool found = false;
    bool approximate = false;           // too large to solve exactly: greedy
    std::uint64_t bytes_to_free = 0;    // live bytes that have to go
    std::uint32_t segments = 0;         // emptied as a whole
    std::uint32_t pages = 0;            // emptied, of expandable segments
    double equal_sets = 0;              // equally cheap sets of blocks, this one included
    std::vector<std::uint32_t> blocks;  // indices into HeapSnapshot::blocks, ascending
};

// What the exact answers of one analysis may cost, whatever its trace holds: about a second.
// Answers that would need more are approximate.
struct CoverBudget {
    std::uint64_t cells = 128'000'000;
};

// Memory whose pool may not release it is left out. `missing_bytes` > 0. Without a budget a single
// answer has a limit.
Cover cheapest_cover(const HeapSnapshot& heap, std::uint64_t missing_bytes, CoverBudget* budget);

}  // namespace fragtrace::analyzer
