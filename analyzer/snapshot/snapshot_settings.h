// The allocator's settings that a snapshot tells, as the text that sets them.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/snapshot/snapshot_dict.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

using SnapshotDivisions = std::vector<std::pair<std::string, std::uint64_t>>;  // per megabytes

struct SnapshotSettings {
    std::string text;  // what was parsed last; empty when nothing was set, or not told
    std::uint64_t max_split_bytes = kUnknown64;  // kUnknown64 = unlimited
    double garbage_collection_threshold = 0;
    bool expandable_segments = false;
    SnapshotDivisions divisions;
};

// Of a dict of settings; `divisions` are the rows of kind kDivisionsRow.
SnapshotSettings settings_of(const SnapshotDict& dict,
                             const std::vector<SnapshotDivisions>& divisions);

// Of a dict {"1": 0, "2": 4, ...}; empty if it is something else.
SnapshotDivisions divisions_of(const PickleReader& reader, std::span<const PickleItem> items);

// As in PYTORCH_CUDA_ALLOC_CONF; empty = defaults.
std::string settings_text(const SnapshotSettings& settings);

}  // namespace fragtrace::analyzer
