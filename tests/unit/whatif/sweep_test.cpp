// A sweep gives the same replays for any number of threads, ranked and classified.
#include "analyzer/analysis/whatif/sweep.h"

#include "analyzer/analysis/whatif/candidates.h"
#include "analyzer/analysis/whatif/equal_replays.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <utility>

using namespace fragtrace::analyzer;

namespace {

// 40 blocks of 9 MiB, every other one freed, then a block of 64 MiB, which does not fit.
ReplayScript holes() {
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

SweepContext exact_context() {
    return {.fidelity_exact = true,
            .recorded_config = {},
            .recorded_capacity_bytes = 410 * kMiB,
            .rules = {}};
}

std::vector<WhatIfRow> rows_of(const SweepContext& context, unsigned threads) {
    auto candidates = default_settings(context, 410 * kMiB);
    const auto cards = default_capacities(context, 410 * kMiB, 100 * kMiB, 64 * 1024 * kMiB);
    candidates.insert(candidates.end(), cards.begin(), cards.end());
    auto rows = sweep(holes(), candidates, context, threads);
    REQUIRE(rows.ok());
    return std::move(rows).value();
}

std::vector<std::size_t> first_equal(const ReplayScript& script,
                                     const std::vector<Candidate>& candidates) {
    const EqualReplays equal(script, candidates);
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        first.push_back(equal.first(i));
    }
    return first;
}

Candidate candidate_of(std::string config, std::uint64_t capacity_bytes) {
    return {.name = config,
            .config = config,
            .capacity_bytes = capacity_bytes,
            .total_bytes = capacity_bytes + 100 * kMiB};
}

// Requests of 1 B to `largest_bytes` on two streams, and about as many frees.
ReplayScript random_script(std::uint32_t seed, std::uint64_t largest_bytes) {
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

// A segment of this size that is older than the recording: a live block of 1 MiB, the rest free.
HeapSnapshot older_segment(std::uint64_t size_bytes) {
    constexpr DeviceAddress kAddress = 0x7000'0000'0000;
    HeapSnapshot heap;
    heap.blocks = {{.address = kAddress,
                    .size_bytes = kMiB,
                    .requested_bytes = kMiB,
                    .allocated_by = 1000,
                    .stream = 0,
                    .state = BlockState::kLive},
                   {.address = kAddress + kMiB, .size_bytes = size_bytes - kMiB, .stream = 0}};
    heap.segments = {{.address = kAddress,
                      .size_bytes = size_bytes,
                      .block_count = 2,
                      .stream = 0,
                      .size_class = SizeClass::kLarge}};
    return heap;
}

// The same requests, with memory that is older than the recording.
ReplayScript with_older_segment(const ReplayScript& script, std::uint64_t size_bytes) {
    ReplayScript with = script;
    with.checkpoints = {older_segment(size_bytes)};
    with.steps = {};
    with.steps.push_back({.kind = Step::Kind::kAdopt, .event = 0});
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        with.steps.push_back(script.steps[i]);
    }
    return with;
}

void check_same_replay(const WhatIfRow& a, const WhatIfRow& b) {
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

TEST_CASE("settings without any effect are not replayed, and their rows say so") {
    const auto candidate = [](std::string config, std::uint64_t capacity_bytes) {
        return Candidate{.name = config,
                         .config = config,
                         .capacity_bytes = capacity_bytes,
                         .total_bytes = 1000 * kMiB};
    };
    const std::vector<Candidate> candidates = {
        candidate("", 410 * kMiB),
        candidate("garbage_collection_threshold:0.1", 410 * kMiB),
        candidate("garbage_collection_threshold:0.1", 420 * kMiB),
        candidate("max_split_size_mb:64", 410 * kMiB),
        candidate("garbage_collection_threshold:0.2,max_split_size_mb:64", 410 * kMiB)};
    ReplayScript script = holes();
    CHECK(first_equal(script, candidates) == std::vector<std::size_t>{0, 0, 2, 3, 3});
    const auto rows = sweep(script, candidates, exact_context(), 2);
    REQUIRE(rows.ok());
    CHECK((*rows)[0].is_recorded);
    CHECK_FALSE((*rows)[1].is_recorded);
    CHECK((*rows)[1].candidate.config == "garbage_collection_threshold:0.1");
    CHECK((*rows)[1].result.statistics.reserved.peak == (*rows)[0].result.statistics.reserved.peak);
    SECTION("a memory limit makes garbage collection effective") {
        auto limited = candidates;
        for (Candidate& one : limited) {
            one.config += one.config.empty() ? "" : ",";
            one.config += "per_process_memory_fraction:0.5";
        }
        CHECK(first_equal(script, limited) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    }
    SECTION("the program sets a memory limit") {
        script.steps.push_back({.kind = Step::Kind::kMemoryFraction, .event = 41});
        CHECK(first_equal(script, candidates) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    }
    SECTION("the program changes the settings") {
        script.settings.emplace_back("per_process_memory_fraction:0.5");
        CHECK(first_equal(script, candidates) == std::vector<std::size_t>{0, 1, 2, 3, 4});
    }
}

TEST_CASE("a replay that meets no limit gives the same results as other cards' replays") {
    const std::vector<std::string> settings = {"",
                                               "max_split_size_mb:20",
                                               "max_split_size_mb:64",
                                               "roundup_power2_divisions:4",
                                               "roundup_power2_divisions:4,max_split_size_mb:64",
                                               "expandable_segments:True",
                                               "garbage_collection_threshold:0.6",
                                               "per_process_memory_fraction:0.5"};
    std::size_t answered = 0;
    std::size_t replayed = 0;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        ReplayScript script = random_script(seed, (seed % 4 == 0 ? 200 : 30) * kMiB);
        if (seed % 3 == 0) {
            script = with_older_segment(script, (seed % 2 == 0 ? 20 : 70) * kMiB);
        }
        std::vector<Candidate> candidates;
        for (const std::uint64_t capacity : {60u, 100u, 200u, 400u, 3000u}) {
            for (const std::string& config : settings) {
                candidates.push_back(candidate_of(config, capacity * kMiB));
            }
        }
        const auto together = sweep(script, candidates, exact_context(), 2);
        REQUIRE(together.ok());
        const EqualReplays equal(script, candidates);
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            CAPTURE(seed, candidates[i].config, candidates[i].capacity_bytes);
            const auto alone = sweep(script, {candidates[i]}, exact_context(), 1);
            REQUIRE(alone.ok());
            const WhatIfRow& a = alone->front();
            const WhatIfRow& b = (*together)[i];
            CHECK(b.candidate.config == candidates[i].config);
            CHECK(b.candidate.capacity_bytes == candidates[i].capacity_bytes);
            check_same_replay(a, b);
            if (equal.first(i) == i && equal.base(i) != i) {
                (a.ooms() + a.retries() == 0 ? answered : replayed) += 1;
            }
        }
    }
    CHECK(answered > 100);
    CHECK(replayed > 100);
}

TEST_CASE("no replay is shared if a card refuses or a segment is not split") {
    const std::vector<Candidate> candidates = {
        candidate_of("", 410 * kMiB),
        candidate_of("max_split_size_mb:64", 410 * kMiB),
        candidate_of("", 500 * kMiB),
        candidate_of("expandable_segments:True", 500 * kMiB),
        candidate_of("expandable_segments:True", 410 * kMiB)};
    ReplayScript script = holes();
    const auto bases = [&] {
        const EqualReplays equal(script, candidates);
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            all.push_back(equal.base(i));
        }
        return all;
    };
    CHECK(bases() == std::vector<std::size_t>{2, 2, 2, 3, 4});
    const EqualReplays equal(script, candidates);
    CHECK(equal.is_answered(0, {.enough_bytes = 410 * kMiB, .largest_segment_bytes = 64 * kMiB}));
    CHECK_FALSE(
        equal.is_answered(0, {.enough_bytes = 410 * kMiB + 1, .largest_segment_bytes = 64 * kMiB}));
    CHECK_FALSE(
        equal.is_answered(1, {.enough_bytes = 410 * kMiB, .largest_segment_bytes = 64 * kMiB}));
    CHECK(
        equal.is_answered(1, {.enough_bytes = 410 * kMiB, .largest_segment_bytes = 64 * kMiB - 1}));
    CHECK_FALSE(equal.is_answered(0, ReplayLimits{}));
    const std::vector<std::size_t> none = {0, 1, 2, 3, 4};
    SECTION("the program queries free memory") {
        script.steps.push_back({.kind = Step::Kind::kMemoryInfo, .event = 41});
        CHECK(bases() == none);
    }
    SECTION("an expandable segment is older than the recording") {
        script.checkpoints = {older_segment(20 * kMiB)};
        script.steps.push_back({.kind = Step::Kind::kAdopt, .event = 41});
        CHECK(bases() == std::vector<std::size_t>{2, 2, 2, 3, 4});
        script.checkpoints.front().segments.front().expandable = true;
        CHECK(bases() == none);
    }
    SECTION("a library allocates memory of the card") {
        script.libraries.push_back({});
        CHECK(bases() == none);
    }
    SECTION("the process has its own memory limit") {
        script.steps.push_back({.kind = Step::Kind::kMemoryFraction, .event = 41});
        CHECK(bases() == none);
    }
}

TEST_CASE("a later sweep repeats no replay of an earlier one, and gives the same rows") {
    const auto candidates = [](const std::vector<std::string>& settings) {
        std::vector<Candidate> all;
        for (const std::string& config : settings) {
            all.push_back(candidate_of(config, 3000 * kMiB));
        }
        return all;
    };
    const ReplayScript script = random_script(7, 30 * kMiB);
    KnownReplays known;
    const std::vector<Candidate> first = candidates({"", "roundup_power2_divisions:4"});
    REQUIRE(sweep(script, first, exact_context(), 2, {}, &known).ok());
    const std::vector<Candidate> later =
        candidates({"roundup_power2_divisions:4,max_split_size_mb:64",
                    "garbage_collection_threshold:0.6,roundup_power2_divisions:4",
                    "large_segment_size_mb:64",
                    ""});
    for (const std::size_t expected : {2u, 0u}) {  // all of them are known the second time
        std::size_t shown = 0;
        const auto rows = sweep(
            script,
            later,
            exact_context(),
            2,
            [&shown](std::size_t, std::size_t) { ++shown; },
            &known);
        REQUIRE(rows.ok());
        CHECK(shown == expected);  // large_segment_size_mb, and the row that may need a replay
        for (std::size_t i = 0; i < later.size(); ++i) {
            CAPTURE(later[i].config);
            CHECK((*rows)[i].candidate.config == later[i].config);
            const auto alone = sweep(script, {later[i]}, exact_context(), 1);
            REQUIRE(alone.ok());
            check_same_replay(alone->front(), (*rows)[i]);
        }
    }
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
