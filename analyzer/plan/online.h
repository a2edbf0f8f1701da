// Placement in order of time, for inputs of any size. A buffer gets a gap at its begin and frees it
// at its end, and free memory is always merged. Unlike a real allocator, this one has no segments
// and knows each buffer's lifetime.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

struct OnlineRules {
    bool best_fit = true;  // the smallest gap; false: the lowest one
    // Buffers with at most this lifetime go to the high end of the highest gap below
    // `ceiling_bytes`. There they do not fragment the space of long-lived buffers. 0: off.
    std::uint64_t short_lived = 0;
    std::uint64_t ceiling_bytes = 0;
};

// Fills `offsets` (one per buffer) and returns the height. O(n log n).
std::uint64_t place_online(std::span<const Lifetime> lifetimes,
                           std::span<const Turn> turns,
                           const OnlineRules& rules,
                           std::vector<std::uint64_t>* offsets);

}  // namespace fragtrace::analyzer
