// Data that the page draws before it reads any block: the address axis, the pieces that can be
// released separately, memory over time in bins, and the address x time map as shares.
#pragma once

#include "analyzer/report/page/page_bins.h"
#include "analyzer/report/page/page_data.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint32_t kNoUnit = 0xffffffffu;
inline constexpr std::size_t kMapColumns = 1024;
inline constexpr std::size_t kMapRows = 512;

// An address range that was reserved at some time, and its offset on the compact axis.
struct AxisRange {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::uint64_t offset_bytes = 0;
};

class AddressAxis {
  public:
    // If there are more ranges, those with the smallest gaps between them become one.
    explicit AddressAxis(const PageDevice& device, std::size_t most_ranges = 10'000);

    [[nodiscard]] std::uint64_t offset_of(std::uint64_t address) const;

    [[nodiscard]] const std::vector<AxisRange>& ranges() const { return ranges_; }

    [[nodiscard]] std::uint64_t size_bytes() const;

    // The gaps within ranges.
    [[nodiscard]] std::size_t joined() const { return joined_; }

    [[nodiscard]] std::uint64_t joined_bytes() const { return joined_bytes_; }

  private:
    void join_nearest(std::size_t most_ranges);

    std::vector<AxisRange> ranges_;
    std::size_t joined_ = 0;
    std::uint64_t joined_bytes_ = 0;
};

// The smallest piece that the pool can release: a segment, or a page of an expandable segment.
struct ReleaseUnit {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = kNeverNs;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::uint32_t segment = 0;
};

struct PageOverview {
    std::vector<ReleaseUnit> units;
    std::vector<std::uint32_t> block_unit;  // the unit in which each block begins; kNoUnit = none

    struct Span {
        std::uint32_t block;
        std::uint32_t unit;
    };

    std::vector<Span> spans;  // for blocks in several units: every further unit, ascending
    std::vector<PageBin> bins;
    // kMapColumns x kMapRows shares of area, 0..255, row by row from the lowest address.
    std::vector<std::uint8_t> in_use;
    std::vector<std::uint8_t> kept;  // reserved and not releasable
    std::vector<std::uint8_t> reserved;
};

// `end_ns` > 0 is the right edge of time.
PageOverview make_overview(const PageDevice& device, const AddressAxis& axis, std::uint64_t end_ns);

}  // namespace fragtrace::analyzer
