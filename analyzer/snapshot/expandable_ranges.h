// The address ranges of a device's expandable segments, which a snapshot does not tell: worked out
// from what was mapped.
#pragma once

#include "analyzer/snapshot/snapshot_start.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

struct ExpandableRange {
    std::uint64_t begin = 0;  // the lowest address that was ever mapped in it
    std::uint64_t size_bytes = 0;
};

// Ascending. There is one range per stream and size class of a pool, as a rule: what lies between
// mappings of another belongs to none.
std::vector<ExpandableRange> expandable_ranges(const SnapshotStart& start,
                                               std::span<const SnapshotEntry> entries,
                                               std::uint64_t large_page_bytes);

}  // namespace fragtrace::analyzer
