#include "analyzer/snapshot/expandable_ranges.h"

#include <algorithm>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// The end of the last range is not known; this is its assumed size.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

struct Mapping {
    std::uint64_t address = 0;
    std::uint64_t stream = 0;
    std::uint32_t pool = 0;
    bool small = false;

    [[nodiscard]] auto owner() const { return std::tuple(stream, pool, small); }
};

}  // namespace

std::vector<ExpandableRange> expandable_ranges(const SnapshotStart& start,
                                               std::span<const SnapshotEntry> entries,
                                               std::uint64_t large_page_bytes) {
    std::vector<Mapping> mappings;
    for (const auto& [address, segment] : start.segments) {
        if (segment.expandable) {
            mappings.push_back({address, segment.stream, segment.pool, segment.small});
        }
    }
    for (const SnapshotEntry& entry : entries) {
        if (entry.action == SnapshotAction::kSegmentMap) {
            mappings.push_back({entry.address,
                                entry.stream,
                                entry.pool,
                                maps_small_pages(entry.size_bytes, large_page_bytes)});
        }
    }
    std::sort(mappings.begin(), mappings.end(), [](const Mapping& a, const Mapping& b) {
        return a.address < b.address;
    });
    std::vector<ExpandableRange> ranges;
    for (std::size_t i = 0; i < mappings.size(); ++i) {
        if (i != 0 && mappings[i].owner() == mappings[i - 1].owner()) {
            continue;
        }
        if (!ranges.empty()) {
            ranges.back().size_bytes =
                std::min(kMostBytes, mappings[i].address - ranges.back().begin);
        }
        ranges.push_back({mappings[i].address, kMostBytes});
    }
    return ranges;
}

}  // namespace fragtrace::analyzer
