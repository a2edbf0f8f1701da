// The allocator's settings that a snapshot tells, as the text that sets them.
#pragma once

#include <fragtrace/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

struct SnapshotSettings {
    std::string text;  // what was parsed last; empty when nothing was set, or not told
    std::uint64_t max_split_bytes = kUnknown64;  // kUnknown64 = unlimited
    double garbage_collection_threshold = 0;
    bool expandable_segments = false;
    std::vector<std::pair<std::string, std::uint64_t>> divisions;  // megabytes, divisions
};

// As in PYTORCH_CUDA_ALLOC_CONF; empty = defaults.
std::string settings_text(const SnapshotSettings& settings);

}  // namespace fragtrace::analyzer
