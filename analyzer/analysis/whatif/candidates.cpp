#include "analyzer/analysis/whatif/candidates.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// Settings that are used or recommended, with values that make a difference in practice.
constexpr std::array kSettings = {
    "expandable_segments:True",
    "roundup_power2_divisions:2",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:16",
    "expandable_segments:True,roundup_power2_divisions:4",
    "max_split_size_mb:20",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8",
    "large_segment_size_mb:64",
    "large_segment_size_mb:256",
};

// Memory sizes of cards in common use, in GiB.
constexpr std::array<std::uint64_t, 12> kCardsGiB = {4, 6, 8, 10, 12, 16, 24, 32, 40, 48, 80, 96};

bool is_known(std::string_view setting, const PytorchRules& rules) {
    return (rules.has_expandable_segments ||
            setting.find("expandable_segments") == std::string_view::npos) &&
           (rules.has_large_segment_size ||
            setting.find("large_segment_size_mb") == std::string_view::npos);
}

bool uses_several_streams(const ReplayScript& script) {
    std::optional<StreamId> first;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        const bool request = step.kind == Step::Kind::kAllocate;
        first = request && !first ? step.stream : first;
        if (request && step.stream != *first) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::vector<std::uint64_t> common_cards() {
    std::vector<std::uint64_t> cards;
    for (const std::uint64_t gib : kCardsGiB) {
        cards.push_back(gib * kGiB);
    }
    return cards;
}

std::vector<Candidate> default_settings(const SweepContext& context, std::uint64_t total_bytes) {
    std::vector<std::string> configs = {context.recorded_config};
    if (!context.recorded_config.empty()) {
        configs.emplace_back();
    }
    for (const char* setting : kSettings) {
        if (is_known(setting, context.rules) &&
            std::find(configs.begin(), configs.end(), setting) == configs.end()) {
            configs.emplace_back(setting);
        }
    }
    std::vector<Candidate> candidates;
    for (std::string& config : configs) {
        candidates.push_back({.name = config.empty() ? "default settings" : config,
                              .config = config,
                              .capacity_bytes = context.recorded_capacity_bytes,
                              .total_bytes = total_bytes});
    }
    return candidates;
}

std::vector<Candidate> bound_candidates(const ReplayScript& script,
                                        const SweepContext& context,
                                        std::uint64_t total_bytes,
                                        bool with_plans) {
    std::vector<Candidate> candidates;
    const auto add = [&](const PoolDescription& pool, std::string name, std::string config) {
        candidates.push_back({.name = std::move(name),
                              .pool = std::string(pool.name),
                              .config = std::move(config),
                              .capacity_bytes = context.recorded_capacity_bytes,
                              .total_bytes = total_bytes});
    };
    for (const PoolDescription& pool : known_pools()) {
        if (pool.planned && !with_plans) {
            continue;
        }
        if (!pool.bound.empty()) {
            add(pool, std::string(pool.name), "");
        }
        if (pool.planned && uses_several_streams(script)) {
            add(pool, fmt::format("{}, one stream", pool.name), "one_stream:True");
        }
    }
    return candidates;
}

std::vector<Candidate> default_capacities(const SweepContext& context,
                                          std::uint64_t total_bytes,
                                          std::uint64_t least_bytes,
                                          std::uint64_t most_bytes) {
    const std::uint64_t overhead = total_bytes > context.recorded_capacity_bytes
                                       ? total_bytes - context.recorded_capacity_bytes
                                       : 0;
    std::vector<Candidate> candidates;
    for (const std::uint64_t gib : kCardsGiB) {
        const std::uint64_t card = gib * kGiB;
        if (card <= overhead || card - overhead < least_bytes || card > most_bytes ||
            card == total_bytes) {
            continue;
        }
        candidates.push_back({.name = fmt::format("a card of {} GiB", gib),
                              .config = context.recorded_config,
                              .capacity_bytes = card - overhead,
                              .total_bytes = card});
    }
    return candidates;
}

}  // namespace fragtrace::analyzer
