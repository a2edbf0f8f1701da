// A sweep gives the same replays for any number of threads, ranked and classified.
#include "analyzer/analysis/whatif/sweep.h"

#include "analyzer/analysis/whatif/candidates.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "tests/unit/whatif/sweep_scripts.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <utility>

using namespace fragtrace::analyzer;

namespace {

std::vector<WhatIfRow> rows_of(const SweepContext& context, unsigned threads) {
    auto candidates = default_settings(context, 410 * kMiB);
    const auto cards = default_capacities(context, 410 * kMiB, 100 * kMiB, 64 * 1024 * kMiB);
    candidates.insert(candidates.end(), cards.begin(), cards.end());
    auto rows = sweep(holes(), candidates, context, threads);
    REQUIRE(rows.ok());
    return std::move(rows).value();
}

const WhatIfRow& row_named(const std::vector<WhatIfRow>& rows, std::string_view name) {
    for (const WhatIfRow& row : rows) {
        if (row.candidate.name == name) {
            return row;
        }
    }
    FAIL("no row " << name);
    return rows.front();
}

}  // namespace

TEST_CASE("the results do not depend on the number of threads") {
    const auto one = rows_of(exact_context(), 1);
    const auto many = rows_of(exact_context(), 8);
    REQUIRE(one.size() == many.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
        CAPTURE(one[i].candidate.name);
        CHECK(one[i].candidate.name == many[i].candidate.name);
        CHECK(one[i].ooms() == many[i].ooms());
        CHECK(one[i].result.statistics.reserved.peak == many[i].result.statistics.reserved.peak);
        CHECK(one[i].result.statistics.segments_allocated ==
              many[i].result.statistics.segments_allocated);
    }
}

TEST_CASE("rows follow from their settings, and the best row comes first") {
    auto rows = rows_of(exact_context(), 2);
    CHECK(row_named(rows, "default settings").is_recorded);
    CHECK(row_named(rows, "default settings").ooms() == 1);
    CHECK(row_named(rows, "roundup_power2_divisions:4").ooms() == 0);
    rank(&rows, WhatIfRow(row_named(rows, "default settings")));
    CHECK(rows.front().ooms() == 0);
    for (std::size_t i = 1; i < rows.size(); ++i) {
        CHECK(rows[i - 1].ooms() <= rows[i].ooms());
    }
}

TEST_CASE("rows of a trace that begins in mid-life are estimates") {
    SweepContext context = exact_context();
    context.adopted_bytes = 64 * kMiB;
    const auto rows = rows_of(context, 2);
    for (const WhatIfRow& row : rows) {
        INFO(row.candidate.name);
        const bool bound = row.candidate.pool != "pytorch";
        CHECK((row.is_recorded || bound || row.row_class == RowClass::kEstimate));
        CHECK((row.is_recorded || bound ||
               row.class_reason.find("64 MiB allocated before the recording began") !=
                   std::string::npos));
    }
    CHECK(row_named(rows, "default settings").row_class == RowClass::kExact);
}

TEST_CASE("a row is exact as long as the program sees the recorded results") {
    const auto row_of = [](const ReplayScript& script, std::uint64_t capacity_bytes) {
        const auto rows = sweep(script,
                                {{.name = "x",
                                  .config = "max_split_size_mb:100",
                                  .capacity_bytes = capacity_bytes,
                                  .total_bytes = capacity_bytes}},
                                exact_context(),
                                1);
        REQUIRE(rows.ok());
        return rows->front();
    };
    ReplayScript script = holes();
    constexpr EventIndex kLast = 40;
    SECTION("the recorded out-of-memory also happens here") {
        const WhatIfRow row = row_of(script, 420 * kMiB);
        CHECK(row.row_class == RowClass::kExact);
        CHECK_FALSE(row.result.divergence);
        CHECK(row.ooms() == 1);
    }
    SECTION("the failed request is served, and the trace ends there") {
        const WhatIfRow row = row_of(script, 1000 * kMiB);
        CHECK(row.row_class == RowClass::kBound);
        REQUIRE(row.result.divergence);
        CHECK(row.result.divergence->kind == Divergence::Kind::kIsServed);
        CHECK(row.result.divergence->event == kLast);
        CHECK(row.result.divergence->statistics.reserved.peak == 464 * kMiB);
    }
    SECTION("the failed request is served, but the recorded run continued without it") {
        script.steps.push_back({.event = kLast + 1, .block = kLast + 1, .value = kMiB});
        const WhatIfRow row = row_of(script, 1000 * kMiB);
        CHECK(row.row_class == RowClass::kEstimate);
        REQUIRE(row.result.divergence);
        CHECK(row.result.divergence->kind == Divergence::Kind::kGoesOn);
        CHECK(row.gets_past());  // the program's next requests are unknown
    }
    SECTION("a served request now runs out of memory") {
        const WhatIfRow row = row_of(script, 100 * kMiB);
        CHECK(row.row_class == RowClass::kBound);
        REQUIRE(row.result.divergence);
        CHECK(row.result.divergence->kind == Divergence::Kind::kFails);
        CHECK(row.result.divergence->event == 10);
        CHECK(row.result.divergence->statistics.ooms == 1);
        CHECK(row.ooms() > 1);
    }
    SECTION("the program queries free memory and gets the same or another amount") {
        StepTable steps;
        for (std::size_t i = 0; i < script.steps.size(); ++i) {
            if (i == 40) {
                steps.push_back({.kind = Step::Kind::kMemoryInfo, .event = 39, .value = 20 * kMiB});
            }
            steps.push_back(script.steps[i]);
        }
        script.steps = steps;
        CHECK(row_of(script, 420 * kMiB).row_class == RowClass::kExact);
        const WhatIfRow row = row_of(script, 410 * kMiB);
        CHECK(row.row_class == RowClass::kEstimate);
        REQUIRE(row.result.divergence);
        CHECK(row.result.divergence->kind == Divergence::Kind::kFreeMemory);
    }
}

TEST_CASE("no row is exact if the recorded run is not replayed exactly") {
    SweepContext context = exact_context();
    context.fidelity_exact = false;
    CHECK(row_named(rows_of(context, 2), "max_split_size_mb:64").row_class == RowClass::kEstimate);
    context = exact_context();
    context.assumed = true;
    CHECK(row_named(rows_of(context, 2), "max_split_size_mb:64").row_class == RowClass::kEstimate);
    CHECK(row_named(rows_of(context, 2), "default settings").row_class == RowClass::kEstimate);
}

TEST_CASE("only settings known to the release are tried") {
    const auto tried = [](std::string_view release, std::string_view key) {
        SweepContext context = exact_context();
        context.rules = PytorchRules::for_release(release);
        context.recorded_config = "max_split_size_mb:77";
        const auto candidates = default_settings(context, 410 * kMiB);
        CHECK(candidates.front().config == "max_split_size_mb:77");
        return std::count_if(
            candidates.begin(), candidates.end(), [key](const Candidate& candidate) {
                return candidate.config.find(key) != std::string::npos;
            });
    };
    CHECK(tried("2.0.1", "expandable_segments") == 0);
    CHECK(tried("2.0.1", "large_segment_size_mb") == 0);
    CHECK(tried("2.0.1", "garbage_collection_threshold") == 2);
    CHECK(tried("2.1.2", "expandable_segments") == 2);
    CHECK(tried("2.9.1", "large_segment_size_mb") == 0);
    CHECK(tried("2.13.0", "large_segment_size_mb") == 2);
    CHECK(tried("", "large_segment_size_mb") == 2);
    CHECK(tried("", "expandable_segments") == 2);
}

TEST_CASE("one invalid setting fails the sweep with PyTorch's reason") {
    const auto rows =
        sweep(holes(), {{.name = "x", .config = "max_split_size_mb:1"}}, exact_context(), 2);
    REQUIRE_FALSE(rows.ok());
    CHECK(rows.error().message.find("too small") != std::string::npos);
}

TEST_CASE("a row's curve ends where its replay ends and never passes its peak") {
    for (const WhatIfRow& row : rows_of(exact_context(), 2)) {
        INFO(row.candidate.name);
        REQUIRE_FALSE(row.reserved_curve.empty());
        CHECK(*std::max_element(row.reserved_curve.begin(), row.reserved_curve.end()) <=
              row.result.statistics.reserved.peak);
        CHECK(*std::max_element(row.reserved_curve.begin(), row.reserved_curve.end()) > 0);
    }
}

TEST_CASE("a candidate with until_failure ends at its first failure") {
    ReplayScript script = holes();
    for (EventIndex event = 41; event < 44; ++event) {
        script.steps.push_back({.event = event, .block = event, .value = 900 * kMiB});
    }
    std::vector<Candidate> candidates(2);
    for (Candidate& candidate : candidates) {
        candidate.capacity_bytes = candidate.total_bytes = 410 * kMiB;
    }
    candidates[1].until_failure = true;
    const auto rows = sweep(script, candidates, exact_context(), 1);
    REQUIRE(rows.ok());
    CHECK((*rows)[0].ooms() == 4);
    CHECK((*rows)[1].ooms() == 1);
}

TEST_CASE("a candidate with a limit of reserved memory ends once it is exceeded") {
    const ReplayScript script = random_script(3, 30 * kMiB);
    const auto limited = [](std::uint64_t most_bytes) {
        Candidate candidate = candidate_of("", 3000 * kMiB);
        candidate.most_reserved_bytes = most_bytes;
        return candidate;
    };
    const auto whole = sweep(script, {candidate_of("", 3000 * kMiB)}, exact_context(), 1);
    REQUIRE(whole.ok());
    const std::uint64_t peak = whole->front().result.statistics.reserved.peak;
    const auto rows = sweep(script, {limited(peak / 2), limited(peak - 1)}, exact_context(), 1);
    REQUIRE(rows.ok());
    for (const WhatIfRow& row : *rows) {
        CHECK(row.result.statistics.reserved.peak > row.candidate.most_reserved_bytes);
        CHECK(row.result.requests_served < whole->front().result.requests_served);
    }
    SECTION("with enough room, it is replayed to the end") {
        const auto enough = sweep(script, {limited(peak)}, exact_context(), 1);
        REQUIRE(enough.ok());
        check_same_replay(whole->front(), enough->front());
    }
    SECTION("a replay that ended early answers none that goes on longer") {
        KnownReplays known;
        REQUIRE(sweep(script, {limited(peak / 2)}, exact_context(), 1, {}, &known).ok());
        const auto later =
            sweep(script,
                  {limited(peak), candidate_of("max_split_size_mb:1000", 3000 * kMiB)},
                  exact_context(),
                  1,
                  {},
                  &known);
        REQUIRE(later.ok());
        for (const WhatIfRow& row : *later) {
            CHECK(row.result.statistics.reserved.peak == peak);
            CHECK(row.result.requests_served == whole->front().result.requests_served);
        }
    }
}
