// The compact address axis: all ranges that were ever reserved, one after the other without gaps.
#include "analyzer/report/page/page_overview.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::uint64_t end_of(const AxisRange& range) {
    return range.address + range.size_bytes;
}

}  // namespace

AddressAxis::AddressAxis(const PageDevice& device, std::size_t most_ranges) {
    std::vector<AxisRange> pieces;
    pieces.reserve(device.segments.size());
    for (const SegmentLife& segment : device.segments) {
        if (segment.size_bytes > 0) pieces.push_back({segment.address, segment.size_bytes, 0});
    }
    // Without segments (a trace of only one layer), show the blocks themselves.
    if (pieces.empty()) {
        const BlockLives& blocks = device.blocks;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            pieces.push_back({blocks.address[i], blocks.size_bytes[i], 0});
        }
    }
    std::sort(pieces.begin(), pieces.end(), [](const AxisRange& a, const AxisRange& b) {
        return a.address < b.address;
    });
    for (const AxisRange& piece : pieces) {
        const std::uint64_t end = piece.address + piece.size_bytes;
        if (!ranges_.empty() && piece.address <= end_of(ranges_.back())) {
            AxisRange& last = ranges_.back();
            last.size_bytes = std::max(last.size_bytes, end - last.address);
        } else {
            ranges_.push_back(piece);
        }
    }
    if (ranges_.size() > most_ranges) join_nearest(most_ranges);
    std::uint64_t offset_bytes = 0;
    for (AxisRange& range : ranges_) {
        range.offset_bytes = offset_bytes;
        offset_bytes += range.size_bytes;
    }
}

// Joins ranges over the smallest gaps between them.
void AddressAxis::join_nearest(std::size_t most_ranges) {
    const auto gap_before = [this](std::size_t i) {
        return ranges_[i].address - end_of(ranges_[i - 1]);
    };
    std::vector<std::uint64_t> gaps;
    for (std::size_t i = 1; i < ranges_.size(); ++i)
        gaps.push_back(gap_before(i));
    const auto largest_joined =
        gaps.begin() + static_cast<std::ptrdiff_t>(ranges_.size() - most_ranges - 1);
    std::nth_element(gaps.begin(), largest_joined, gaps.end());
    std::vector<AxisRange> joined = {ranges_.front()};
    for (std::size_t i = 1; i < ranges_.size(); ++i) {
        if (const std::uint64_t gap = gap_before(i); gap > *largest_joined) {
            joined.push_back(ranges_[i]);
        } else {
            joined.back().size_bytes = end_of(ranges_[i]) - joined.back().address;
            joined_bytes_ += gap;
        }
    }
    joined_ = ranges_.size() - joined.size();
    ranges_ = std::move(joined);
}

std::uint64_t AddressAxis::offset_of(std::uint64_t address) const {
    const auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), address, [](std::uint64_t value, const AxisRange& range) {
            return value < range.address;
        });
    if (after == ranges_.begin()) return 0;
    const AxisRange& range = *(after - 1);
    return range.offset_bytes + std::min(address - range.address, range.size_bytes);
}

std::uint64_t AddressAxis::size_bytes() const {
    return ranges_.empty() ? 0 : ranges_.back().offset_bytes + ranges_.back().size_bytes;
}

}  // namespace fragtrace::analyzer
