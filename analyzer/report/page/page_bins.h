// Memory over time in kPageBins bins, from the page's own sweep and what others have of the device.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::size_t kPageBins = 2048;

// A sum of bytes as a whole number; what no number of 63 bits holds becomes 0 or the largest one.
constexpr std::uint64_t to_count(double value) {
    constexpr double kMost = 0x1p63;
    return !(value > 0)     ? 0
           : value >= kMost ? std::uint64_t{1} << 63
                            : static_cast<std::uint64_t>(value);
}

// Time-weighted means of a bin, which add up exactly as the parts of reserved do, and extremes.
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

// What the sweep knows at a moment.
struct MemoryState {
    std::uint64_t requested = 0;
    std::uint64_t active = 0;
    std::uint64_t pending = 0;
    std::uint64_t reserved = 0;
    std::uint64_t releasable = 0;
};

class BinFiller {
  public:
    BinFiller(const OthersLife& others, std::uint64_t end_ns);

    // `state` held from the last call's time until `time_ns`.
    void advance(std::uint64_t time_ns, const MemoryState& state);
    std::vector<PageBin> take();

  private:
    struct Sample {
        double requested, allocated, pending, reserved, releasable, other;
    };

    void hold(std::uint64_t until_ns, const MemoryState& state);
    [[nodiscard]] Sample sample(const MemoryState& state) const;
    void fill(double begin, double end, const Sample& sample);

    const OthersLife& others_;
    std::uint64_t end_ns_;
    std::uint64_t now_ns_ = 0;
    std::size_t next_other_ = 0;  // first of others_ after now_ns_
    std::vector<PageBin> bins_;
};

}  // namespace fragtrace::analyzer
