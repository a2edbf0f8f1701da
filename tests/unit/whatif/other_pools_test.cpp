// Rows of pools other than PyTorch's: intervals, estimates, and who can use them.
#include "analyzer/analysis/whatif/other_pools.h"

#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <map>

using namespace fragtrace::analyzer;

namespace {

constexpr std::uint64_t kCard = 600 * kMiB;

// 40 blocks of 9 MiB, every other one freed, then a block of 64 MiB.
ReplayScript holes() {
    ReplayScript script;
    script.streams = {0};
    for (BlockId i = 0; i < 40; ++i) {
        script.steps.push_back({.event = i, .block = i, .value = 9 * kMiB});
    }
    for (BlockId i = 1; i < 40; i += 2) {
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = i});
    }
    script.steps.push_back({.event = 40, .block = 40, .value = 64 * kMiB});
    return script;
}

std::map<std::string, WhatIfRow> rows() {
    const SweepContext context{.fidelity_exact = true,
                               .recorded_config = {},
                               .recorded_capacity_bytes = kCard,
                               .rules = {}};
    auto swept = sweep(holes(), pool_candidates(context, kCard), context, 2);
    REQUIRE(swept.ok());
    std::map<std::string, WhatIfRow> by_name;
    for (WhatIfRow& row : *swept) {
        by_name[row.candidate.name] = std::move(row);
    }
    return by_name;
}

}  // namespace

TEST_CASE("each pool reserves memory for the same requests by its own rules") {
    const auto by_name = rows();
    const auto reserved = [&by_name](const char* name) {
        return by_name.at(name).result.statistics.reserved.peak / kMiB;
    };
    CHECK(reserved("none") == 360);
    CHECK(reserved("best-fit") == 416);           // 64 at the end, 8 of them were free
    CHECK(reserved("bfc") == 450);                // three quarters of the card
    CHECK(reserved("bfc:preallocate:0") == 450);  // 16 16 32 64 128, and what is left: 194
    CHECK(by_name.at("rmm-arena").ooms() == 8);   // half of the card holds 33 of the blocks
}

TEST_CASE("a pool with an unpublished policy is shown as an interval") {
    const auto by_name = rows();
    const WhatIfRow& row = by_name.at("cuda-async");
    REQUIRE(row.lower.has_value());
    CHECK(row.result.statistics.reserved.peak == 512 * kMiB);  // 14 segments of 32, and one of 64
    CHECK(row.least_reserved_bytes() == 384 * kMiB);           // 360 live, by 32
    CHECK(row.class_reason == "an interval: the driver's method is not public");
    CHECK_FALSE(by_name.at("none").lower.has_value());
    CHECK(by_name.at("none").least_reserved_bytes() == 360 * kMiB);
}

TEST_CASE("rows of other pools are estimates and say how PyTorch can use them") {
    for (const auto& [name, row] : rows()) {
        INFO(name);
        CHECK(row.row_class == RowClass::kEstimate);
        CHECK_FALSE(row.class_reason.empty());
        CHECK_FALSE(row.usable_reason.empty());
        CHECK_FALSE(row.is_recorded);
        CHECK(row.usable == !find_pool(row.candidate.pool)->usable_by.empty());
    }
}
