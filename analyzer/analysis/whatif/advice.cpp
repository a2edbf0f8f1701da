#include "analyzer/analysis/whatif/advice.h"

#include "analyzer/analysis/whatif/combinations.h"
#include "analyzer/analysis/whatif/ranking.h"

#include <algorithm>
#include <array>
#include <functional>

namespace fragtrace::analyzer {
namespace {

// A row tries a single setting. The recorded run may have several.
bool sets(const WhatIfRow& row, std::string_view key) {
    return row.is_recorded
               ? setting_keys(row.candidate.config).contains(key)
               : row.candidate.remedy == Remedy::kSettings && row.candidate.change == nullptr &&
                     setting_key(row.candidate.config) == key;
}

Advice judge(std::string name,
             const std::string& key_of_advice,
             const std::vector<WhatIfRow>& rows,
             const WhatIfRow& recorded,
             const std::function<bool(const WhatIfRow&)>& belongs) {
    Advice advice{.name = std::move(name), .key = key_of_advice};
    const WhatIfRow* best = nullptr;
    bool usable = false;
    bool in_force = false;
    for (const WhatIfRow& row : rows) {
        if (!belongs(row)) {
            continue;
        }
        in_force = in_force || row.is_recorded;
        usable = usable || row.usable;
        switch (effect_of(row, recorded)) {
            case Advice::Effect::kHelped:
            case Advice::Effect::kHelpedALittle:
                ++advice.helped;
                break;
            case Advice::Effect::kWorse:
            case Advice::Effect::kWorseALittle:
                ++advice.worse;
                break;
            default:
                ++advice.nothing;
                break;
        }
        const bool better =
            best == nullptr ||
            (row.usable != best->usable ? row.usable : ranks_before(row, *best, recorded));
        best = better ? &row : best;
    }
    if (best == nullptr) {
        advice.reason = key_of_advice == "empty_cache" ? "no steps were found, or too many to try"
                        : key_of_advice == "caching_off"
                            ? "this trace does not allow it"
                            : "the recorded PyTorch has no such setting";
        return advice;
    }
    advice.row = best->candidate.name;
    advice.row_class = best->row_class;
    advice.bound_kind = best->bound_kind;
    advice.class_text = best->class_text();
    advice.saved_bytes = static_cast<std::int64_t>(recorded.result.statistics.reserved.peak) -
                         static_cast<std::int64_t>(best->result.statistics.reserved.peak);
    advice.ooms =
        static_cast<std::int64_t>(best->ooms()) - static_cast<std::int64_t>(recorded.ooms());
    advice.retries =
        static_cast<std::int64_t>(best->retries()) - static_cast<std::int64_t>(recorded.retries());
    advice.ooms_left = best->ooms();
    advice.effect = effect_of(*best, recorded);
    if (in_force) {
        advice.effect = Advice::Effect::kInForce;
    } else if (!usable) {
        advice.effect = Advice::Effect::kNotUsable;
        advice.reason = best->usable_reason;
    } else if (best->candidate.remedy == Remedy::kSettings && !recorded.candidate.config.empty() &&
               best->candidate.config != recorded.candidate.config) {
        advice.reason = "in place of the recorded settings";
    }
    return advice;
}

constexpr std::array<std::string_view, 5> kSettingKeys = {"expandable_segments",
                                                          "max_split_size_mb",
                                                          "garbage_collection_threshold",
                                                          "roundup_power2_divisions",
                                                          "large_segment_size_mb"};

}  // namespace

std::string_view effect_name(Advice::Effect effect) {
    switch (effect) {
        case Advice::Effect::kHelped:
            return "helped";
        case Advice::Effect::kHelpedALittle:
            return "helped a little";
        case Advice::Effect::kNothing:
            return "did nothing";
        case Advice::Effect::kWorse:
            return "made it worse";
        case Advice::Effect::kWorseALittle:
            return "made it a little worse";
        case Advice::Effect::kInForce:
            return "in force";
        case Advice::Effect::kNotUsable:
            return "not usable here";
        case Advice::Effect::kNotReplayed:
            return "not replayed";
    }
    return "";
}

Advice::Effect effect_of(const WhatIfRow& row, const WhatIfRow& recorded) {
    switch (change_of(row, recorded)) {
        case Change::kHelps:
            return Advice::Effect::kHelped;
        case Change::kHelpsALittle:
            return Advice::Effect::kHelpedALittle;
        case Change::kNothing:
            return Advice::Effect::kNothing;
        case Change::kHurtsALittle:
            return Advice::Effect::kWorseALittle;
        case Change::kHurts:
            return Advice::Effect::kWorse;
    }
    return Advice::Effect::kNothing;
}

std::vector<Advice> judge_advice(const std::vector<WhatIfRow>& rows) {
    std::vector<Advice> advice;
    const WhatIfRow* recorded = recorded_row(rows);
    if (recorded == nullptr) {
        return advice;
    }
    for (const std::string_view key : kSettingKeys) {
        advice.push_back(
            judge(std::string(key), std::string(key), rows, *recorded, [key](const WhatIfRow& row) {
                return sets(row, key);
            }));
    }
    // Compare settings, so that combinations are excluded.
    advice.push_back(judge(
        "torch.cuda.empty_cache()", "empty_cache", rows, *recorded, [&](const WhatIfRow& row) {
            return row.candidate.remedy == Remedy::kEmptyCache &&
                   row.candidate.config == recorded->candidate.config;
        }));
    advice.push_back(
        judge("PYTORCH_NO_CUDA_MEMORY_CACHING=1",
              "caching_off",
              rows,
              *recorded,
              [](const WhatIfRow& row) { return row.candidate.remedy == Remedy::kCachingOff; }));
    return advice;
}

}  // namespace fragtrace::analyzer
