// The allocator's settings in a snapshot, in the text form that sets them.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/snapshot/snapshot_dict.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Divisions by size range; the ranges are in megabytes.
using SnapshotDivisions = std::vector<std::pair<std::string, std::uint64_t>>;

struct SnapshotSettings {
    std::string text;                            // last parsed text; empty if not set or not known
    std::uint64_t max_split_bytes = kUnknown64;  // kUnknown64 = unlimited
    double garbage_collection_threshold = 0;
    bool expandable_segments = false;
    SnapshotDivisions divisions;
};

// Reads a dict of settings; `divisions` are the rows of kind kDivisionsRow.
SnapshotSettings settings_of(const SnapshotDict& dict,
                             const std::vector<SnapshotDivisions>& divisions);

// Reads a dict {"1": 0, "2": 4, ...}; empty if it is something else.
SnapshotDivisions divisions_of(const PickleReader& reader, std::span<const PickleValue> items);

// Returns the settings as text for PYTORCH_CUDA_ALLOC_CONF; empty = defaults.
std::string settings_text(const SnapshotSettings& settings);

}  // namespace fragtrace::analyzer
