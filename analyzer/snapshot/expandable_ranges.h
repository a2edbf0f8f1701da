// The address ranges of a device's expandable segments. A snapshot does not contain them, so they
// are derived from the mappings.
#pragma once

#include "analyzer/snapshot/snapshot_start.h"

#include <cstdint>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

struct ExpandableRange {
    std::uint64_t begin = 0;  // the lowest address ever mapped in the range
    std::uint64_t size_bytes = 0;
};

// Returns the ranges in ascending order. PyTorch normally has one range per stream, pool and size
// class. So a range ends where a mapping with another owner begins.
std::vector<ExpandableRange> expandable_ranges(const SnapshotStart& start,
                                               std::span<const SnapshotEntry> entries,
                                               std::uint64_t large_page_bytes);

}  // namespace fragtrace::analyzer
