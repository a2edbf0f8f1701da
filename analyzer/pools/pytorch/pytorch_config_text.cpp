// Converts settings to the text for PYTORCH_CUDA_ALLOC_CONF.
#include "analyzer/pools/pytorch/pytorch_config.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

// Returns the shortest text of roundup_power2_divisions that gives these values.
std::string roundup_to_string(const std::array<std::uint64_t, PytorchConfig::kRoundupSlots>& all) {
    bool equal = true;
    for (const std::uint64_t divisions : all) {
        equal = equal && divisions == all[0];
    }
    if (equal) {
        return std::to_string(all[0]);
    }
    std::string list;
    for (std::size_t slot = 0; slot < all.size(); ++slot) {
        list += fmt::format("{}{}:{}", slot == 0 ? "" : ",", std::uint64_t{1} << slot, all[slot]);
    }
    return fmt::format("[{}]", list);
}

}  // namespace

std::string to_string(const PytorchConfig& config) {
    const PytorchConfig defaults;
    std::string text;
    const auto add = [&text](std::string_view key, const auto& value) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : ",", key, value);
    };
    if (config.large_segment_size_bytes != defaults.large_segment_size_bytes) {
        add("large_segment_size_mb", config.large_segment_size_bytes / kMiB);
    }
    if (config.max_split_size_bytes != defaults.max_split_size_bytes) {
        add("max_split_size_mb", config.max_split_size_bytes / kMiB);
    }
    if (config.max_non_split_rounding_bytes != config.large_segment_size_bytes) {
        add("max_non_split_rounding_mb", config.max_non_split_rounding_bytes / kMiB);
    }
    if (config.garbage_collection_threshold != 0) {
        add("garbage_collection_threshold", config.garbage_collection_threshold);
    }
    if (config.roundup_divisions != defaults.roundup_divisions) {
        add("roundup_power2_divisions", roundup_to_string(config.roundup_divisions));
    }
    if (config.expandable_segments) {
        add("expandable_segments", "True");
    }
    if (config.per_process_memory_fraction != defaults.per_process_memory_fraction) {
        add("per_process_memory_fraction", config.per_process_memory_fraction);
    }
    if (config.throw_on_cudamalloc_oom) {
        add("throw_on_cudamalloc_oom", "True");
    }
    if (config.expandable_segments_reserve.kind == PytorchReserve::Kind::kFraction) {
        add("expandable_segments_reserve", config.expandable_segments_reserve.fraction);
    } else if (config.expandable_segments_reserve.kind == PytorchReserve::Kind::kBytes) {
        add("expandable_segments_reserve",
            fmt::format("{}G",
                        static_cast<double>(config.expandable_segments_reserve.size_bytes) /
                            static_cast<double>(kGiB)));
    }
    return text;
}

}  // namespace fragtrace::analyzer
