// Placement in the order of time, for inputs of any size: every buffer takes a gap when it is born
// and gives it back when it dies, with free memory always coalesced. Unlike an allocator it has no
// segments, and it knows how long each buffer will live.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

struct OnlineRules {
    bool best_fit = true;  // the smallest gap; false: the lowest one
    // Buffers that live no longer than this go to the high end of the highest gap below
    // `ceiling_bytes`, so that they do not come between those that stay; 0: none.
    std::uint64_t short_lived = 0;
    std::uint64_t ceiling_bytes = 0;
};

// Fills `offsets` (one per buffer) and returns the height. O(n log n).
std::uint64_t place_online(std::span<const Lifetime> lifetimes,
                           std::span<const Turn> turns,
                           const OnlineRules& rules,
                           std::vector<std::uint64_t>* offsets);

}  // namespace fragtrace::analyzer
