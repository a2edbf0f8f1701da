#include "analyzer/snapshot/snapshot_settings.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace

std::string settings_text(const SnapshotSettings& settings) {
    if (!settings.text.empty()) {
        return settings.text;
    }
    std::string text;
    const auto add = [&text](const std::string& setting) {
        text += (text.empty() ? "" : ",") + setting;
    };
    if (settings.expandable_segments) {
        add("expandable_segments:True");
    }
    if (settings.max_split_bytes != kUnknown64) {
        add(fmt::format("max_split_size_mb:{}", settings.max_split_bytes / kMiB));
    }
    if (settings.garbage_collection_threshold > 0) {
        add(fmt::format("garbage_collection_threshold:{}", settings.garbage_collection_threshold));
    }
    if (std::any_of(settings.divisions.begin(), settings.divisions.end(), [](const auto& one) {
            return one.second != 0;
        })) {
        std::string list;
        for (const auto& [megabytes, divisions] : settings.divisions) {
            list += fmt::format("{}{}:{}", list.empty() ? "" : ",", megabytes, divisions);
        }
        add(fmt::format("roundup_power2_divisions:[{}]", list));
    }
    return text;
}

}  // namespace fragtrace::analyzer
