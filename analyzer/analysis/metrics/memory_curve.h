// Reserved and allocated memory over a run of unknown length, in at most 512 bins. Bins get wider
// as the run goes on, so that memory does not grow with the length of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// The maxima of each bin. Bin i covers the times from i * bin_ns on, since the start of the trace.
struct MemoryCurve {
    std::uint64_t bin_ns = 0;              // a power of two; 0 = nothing was recorded
    std::vector<std::uint64_t> reserved;   // bytes
    std::vector<std::uint64_t> allocated;  // bytes; as many bins
};

class MemoryCurveBuilder {
  public:
    static constexpr std::size_t kMostBins = 512;

    // What is reserved and allocated from `time_ns` on. A time before the last one counts as the
    // last one.
    void add(std::uint64_t time_ns, std::uint64_t reserved, std::uint64_t allocated);

    [[nodiscard]] const MemoryCurve& curve() const { return curve_; }

    // The curve, with one more bin for the time after the last event if less is held then.
    [[nodiscard]] MemoryCurve finished() const;

  private:
    void widen();

    MemoryCurve curve_;
    std::uint64_t bin_begin_ns_ = 0;  // of the last bin
    std::uint64_t reserved_ = 0;
    std::uint64_t allocated_ = 0;
};

// Joins bins in pairs until there are at most `bins` (at least 1).
void coarsen(MemoryCurve* curve, std::size_t bins);

}  // namespace fragtrace::analyzer
