#include "analyzer/snapshot/snapshot_settings.h"

#include "analyzer/support/units.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostRanges = 64;  // size ranges, each with its divisions

}  // namespace

SnapshotSettings settings_of(const SnapshotDict& dict,
                             const std::vector<SnapshotDivisions>& divisions) {
    SnapshotSettings settings;
    if (dict.has(kMaxSplitSize, Kind::kInteger)) {
        settings.max_split_bytes = dict[kMaxSplitSize].number;
    }
    if (dict.has(kConf, Kind::kText)) {
        settings.text = dict.reader().texts().view(dict[kConf].index);
    }
    if (dict.has(kGcThreshold, Kind::kFloat)) {
        settings.garbage_collection_threshold = std::bit_cast<double>(dict[kGcThreshold].number);
    }
    settings.expandable_segments = dict.is_true(kExpandableSegments);
    if (dict.has(kRoundup, Kind::kRow) && dict[kRoundup].row_kind == kDivisionsRow) {
        settings.divisions = divisions[dict[kRoundup].index];
    }
    return settings;
}

SnapshotDivisions divisions_of(const PickleReader& reader, std::span<const PickleValue> items) {
    SnapshotDivisions row;
    if (items.size() / 2 > kMostRanges) {
        return row;
    }
    for (std::size_t i = 0; i < items.size(); i += 2) {
        if (items[i].kind != Kind::kText || !items[i + 1].is_count()) {
            return {};
        }
        const std::string_view key = reader.texts().view(items[i].index);
        if (key.empty() || key.find_first_not_of("0123456789") != std::string_view::npos) {
            return {};
        }
        row.emplace_back(key, items[i + 1].number);
    }
    return row;
}

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
