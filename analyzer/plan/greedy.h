// Placement in a given order: each buffer goes into a gap between the placed ones that are live
// together with it, or on top of them.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

enum class Fit : std::uint8_t {
    kSmallestGap,  // lowest offset on ties
    kLowest,       // any optimum is reached in some order: that of its own offsets
};

enum class BufferOrder : std::uint8_t { kSize, kArea, kLifetime };

// Largest first, by bytes, bytes x lifetime or lifetime. Ties: by bytes the earlier born, by
// lifetime the larger; else the order of the input.
std::vector<std::uint32_t> order_by(std::span<const Lifetime> lifetimes, BufferOrder order);

class GreedyPlacer {
  public:
    // Both must remain as they are while the placer is used.
    GreedyPlacer(std::span<const Lifetime> lifetimes, const Overlaps& overlaps)
        : lifetimes_(lifetimes), overlaps_(overlaps), placed_(lifetimes.size()) {}

    // Fills `offsets` (one per buffer) and returns the height.
    std::uint64_t place(const std::vector<std::uint32_t>& order,
                        Fit fit,
                        std::vector<std::uint64_t>* offsets);

  private:
    struct Range {
        std::uint64_t begin;
        std::uint64_t end;
    };

    std::span<const Lifetime> lifetimes_;
    const Overlaps& overlaps_;
    std::vector<std::uint8_t> placed_;
    std::vector<Range> taken_;
};

}  // namespace fragtrace::analyzer
