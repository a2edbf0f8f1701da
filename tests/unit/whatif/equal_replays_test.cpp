// One replay answers several candidates only if it is the replay of each of them.
#include "analyzer/analysis/whatif/equal_replays.h"

#include "tests/unit/whatif/sweep_scripts.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

namespace {

std::vector<std::size_t> first_equal(const ReplayScript& script,
                                     const std::vector<Candidate>& candidates) {
    const EqualReplays equal(script, candidates);
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        first.push_back(equal.first(i));
    }
    return first;
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

}  // namespace

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
