#include "analyzer/analysis/whatif/combinations.h"

#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/pools/pytorch/pytorch_config.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kValuesPerKind = 2;

bool combines(const WhatIfRow& row) {
    return row.usable && row.candidate.pool == "pytorch" &&
           (row.candidate.remedy == Remedy::kSettings ||
            row.candidate.remedy == Remedy::kEmptyCache);
}

}  // namespace

std::set<std::string_view> setting_keys(std::string_view config) {
    std::set<std::string_view> keys;
    while (!config.empty()) {
        const std::size_t comma = std::min(config.find(','), config.size());
        keys.insert(config.substr(0, std::min(config.find(':'), comma)));
        config.remove_prefix(std::min(comma + 1, config.size()));
    }
    return keys;
}

std::string_view setting_key(std::string_view config) {
    return config.find(',') == std::string_view::npos ? config.substr(0, config.find(':')) : "";
}

const WhatIfRow* best_row(const std::vector<WhatIfRow>& rows, const WhatIfRow& recorded) {
    const WhatIfRow* best = nullptr;
    for (const WhatIfRow& row : rows) {
        if (combines(row) && (best == nullptr || ranks_before(row, *best, recorded))) {
            best = &row;
        }
    }
    return best;
}

std::vector<Candidate> combine(const std::vector<WhatIfRow>& rows,
                               const WhatIfRow& recorded,
                               const SweepContext& context) {
    const WhatIfRow* best = best_row(rows, recorded);
    std::vector<Candidate> candidates;
    if (best == nullptr) {
        return candidates;
    }
    std::set<std::string> known;
    for (const WhatIfRow& row : rows) {
        if (row.candidate.change == nullptr) {
            known.insert(row.candidate.config);
        }
    }
    // Collects the best values of each setting, and of emptying the cache, which has no key of its
    // own.
    std::map<std::string_view, std::vector<const WhatIfRow*>> kinds;
    for (const WhatIfRow& row : rows) {
        const std::string_view key = row.candidate.change == nullptr
                                         ? setting_key(row.candidate.config)
                                         : std::string_view("empty_cache");
        if (&row != best && combines(row) && !key.empty() &&
            (row.candidate.change == nullptr || row.candidate.config == context.recorded_config)) {
            kinds[key].push_back(&row);
        }
    }
    const std::set<std::string_view> taken = setting_keys(best->candidate.config);
    for (auto& [key, values] : kinds) {
        const bool empties = key == "empty_cache";
        if (taken.contains(key) || (empties && best->candidate.change != nullptr)) {
            continue;
        }
        std::stable_sort(values.begin(), values.end(), [&](const WhatIfRow* a, const WhatIfRow* b) {
            return ranks_before(*a, *b, recorded);
        });
        values.resize(std::min(values.size(), kValuesPerKind));
        for (const WhatIfRow* value : values) {
            Candidate candidate = best->candidate;
            if (empties) {
                candidate.change = value->candidate.change;
                candidate.remedy = value->candidate.remedy;
                candidate.name += " and " + value->candidate.name;
            } else {
                candidate.config += (candidate.config.empty() ? "" : ",") + value->candidate.config;
                candidate.name = candidate.change == nullptr
                                     ? candidate.config
                                     : candidate.name + " and " + value->candidate.config;
                if (candidate.change == nullptr && known.contains(candidate.config)) {
                    continue;
                }
            }
            // Settings that are valid alone may exclude each other, such as sizes that limit one
            // another.
            if (parse_pytorch_config(candidate.config, context.rules).ok()) {
                candidates.push_back(std::move(candidate));
            }
        }
    }
    return candidates;
}

}  // namespace fragtrace::analyzer
