// The compact address axis: all ranges that were ever reserved, one after the other without gaps.
#include "analyzer/report/page/page_overview.h"

#include <algorithm>

namespace fragtrace::analyzer {

AddressAxis::AddressAxis(const PageDevice& device) {
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
    std::uint64_t offset_bytes = 0;
    for (const AxisRange& piece : pieces) {
        const std::uint64_t end = piece.address + piece.size_bytes;
        if (!ranges_.empty() &&
            piece.address <= ranges_.back().address + ranges_.back().size_bytes) {
            AxisRange& last = ranges_.back();
            last.size_bytes = std::max(last.size_bytes, end - last.address);
        } else {
            if (!ranges_.empty()) offset_bytes += ranges_.back().size_bytes;
            ranges_.push_back({piece.address, piece.size_bytes, offset_bytes});
        }
    }
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
