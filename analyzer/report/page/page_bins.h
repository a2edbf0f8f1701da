// Memory over time in kPageBins bins, computed by the page's sweep over events and from the memory
// of other users of the device.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::size_t kPageBins = 2048;

// Converts a sum of bytes to an integer, clamped to [0, 2^63]. NaN becomes 0.
constexpr std::uint64_t to_count(double value) {
    constexpr double kMost = 0x1p63;
    return !(value > 0)     ? 0
           : value >= kMost ? std::uint64_t{1} << 63
                            : static_cast<std::uint64_t>(value);
}

// Time-weighted means and the extremes of a bin. The means add up exactly to mean reserved memory.
struct PageBin {
    double requested = 0;
    double internal = 0;
    double pending = 0;
    double held = 0;  // free bytes that cannot be released
    double releasable = 0;
    double other = 0;
    std::uint64_t allocated_max = 0;
    std::uint64_t allocated_min = 0;
    std::uint64_t reserved_max = 0;
};

// Memory in bytes at one moment of the sweep.
struct MemoryState {
    std::uint64_t requested = 0;
    std::uint64_t active = 0;
    std::uint64_t pending = 0;
    std::uint64_t reserved = 0;
    std::uint64_t releasable = 0;
};

class BinFiller {
  public:
    BinFiller(const BytesOverTime& others, std::uint64_t end_ns);

    // `state` was valid from the last call's time until `time_ns`.
    void advance(std::uint64_t time_ns, const MemoryState& state);
    std::vector<PageBin> take();

  private:
    struct Sample {
        double requested, allocated, pending, reserved, releasable, other;
    };

    void hold(std::uint64_t until_ns, const MemoryState& state);
    [[nodiscard]] Sample sample(const MemoryState& state) const;
    void fill(double begin, double end, const Sample& sample);

    const BytesOverTime& others_;
    std::uint64_t end_ns_;
    std::uint64_t now_ns_ = 0;
    std::size_t next_other_ = 0;  // index of the first sample of others_ after now_ns_
    std::vector<PageBin> bins_;
};

}  // namespace fragtrace::analyzer
