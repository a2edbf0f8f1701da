// Scripts, settings and comparisons for tests of sweeps.
#pragma once

#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// 40 blocks of 9 MiB, every other one freed, then a block of 64 MiB, which does not fit.
inline ReplayScript holes() {
    ReplayScript script;
    script.streams = {0};
    for (BlockId i = 0; i < 40; ++i) {
        script.steps.push_back({.event = i, .block = i, .value = 9 * kMiB});
    }
    for (BlockId i = 1; i < 40; i += 2) {
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = i});
    }
    script.steps.push_back({.recorded_oom = true, .event = 40, .block = 40, .value = 64 * kMiB});
    return script;
}

inline SweepContext exact_context() {
    return {.fidelity_exact = true,
            .recorded_config = {},
            .recorded_capacity_bytes = 410 * kMiB,
            .rules = {}};
}

inline Candidate candidate_of(std::string config, std::uint64_t capacity_bytes) {
    return {.name = config,
            .config = config,
            .capacity_bytes = capacity_bytes,
            .total_bytes = capacity_bytes + 100 * kMiB};
}

// Requests of 1 B to `largest_bytes` on two streams, and about as many frees.
inline ReplayScript random_script(std::uint32_t seed, std::uint64_t largest_bytes) {
    std::mt19937 random(seed);
    ReplayScript script;
    script.streams = {0, 7};
    std::vector<std::pair<BlockId, StreamId>> live;
    for (EventIndex event = 0; event < 300; ++event) {
        if (!live.empty() && random() % 9 < 4) {
            const std::size_t at = random() % live.size();
            script.steps.push_back({.kind = Step::Kind::kRelease,
                                    .stream = live[at].second,
                                    .event = event,
                                    .block = live[at].first});
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            continue;
        }
        const auto stream = static_cast<StreamId>(random() % 2);
        const std::uint64_t most = largest_bytes >> random() % 20;
        script.steps.push_back({.stream = stream,
                                .event = event,
                                .block = event,
                                .value = 1 + random() % std::max<std::uint64_t>(most, 1)});
        live.emplace_back(event, stream);
    }
    return script;
}

inline void check_same_replay(const WhatIfRow& a, const WhatIfRow& b) {
    CHECK(a.ooms() == b.ooms());
    CHECK(a.retries() == b.retries());
    CHECK(a.result.statistics.reserved.peak == b.result.statistics.reserved.peak);
    CHECK(a.result.statistics.segments_allocated == b.result.statistics.segments_allocated);
    CHECK(a.result.statistics.segments_freed == b.result.statistics.segments_freed);
    CHECK(a.result.peak_event == b.result.peak_event);
    CHECK(a.result.pages_decide == b.result.pages_decide);
    CHECK(a.result.divergence.has_value() == b.result.divergence.has_value());
    CHECK(a.reserved_curve == b.reserved_curve);
    CHECK(a.is_recorded == b.is_recorded);
    CHECK(a.class_text() == b.class_text());
    CHECK(a.class_reason == b.class_reason);
}

}  // namespace fragtrace::analyzer
