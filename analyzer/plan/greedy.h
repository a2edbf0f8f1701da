// Greedy placement in a given order. Each buffer goes into a gap between the placed buffers that
// are live at the same time, or above them.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

enum class Fit : std::uint8_t {
    kSmallestGap,  // the smallest gap; the lowest offset on ties
    kLowest,       // the lowest gap; some order gives the optimum: that of its own offsets
};

enum class BufferOrder : std::uint8_t { kSize, kArea, kLifetime };

// Sorts buffers in descending order of bytes, of bytes x lifetime, or of lifetime. Ties: equal
// bytes by earlier begin, equal lifetimes by larger size, otherwise in input order.
std::vector<std::uint32_t> order_by(std::span<const Lifetime> lifetimes, BufferOrder order);

class GreedyPlacer {
  public:
    // Keeps references: both must stay unchanged while the placer is used.
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
