// Remedies are replays of a changed script. Advice, costs, combinations and scans follow from them.
#include "analyzer/analysis/whatif/remedies.h"

#include "analyzer/analysis/whatif/advice.h"
#include "analyzer/analysis/whatif/capacity_scan.h"
#include "analyzer/analysis/whatif/combinations.h"
#include "analyzer/analysis/whatif/less_memory.h"
#include "analyzer/analysis/whatif/near_miss.h"
#include "analyzer/analysis/whatif/obstacles.h"
#include "analyzer/analysis/whatif/row_costs.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <map>

using namespace fragtrace::analyzer;

namespace {

Step allocate(BlockId block, std::uint64_t mib) {
    return {.event = block, .block = block, .value = mib * kMiB};
}

Step release(EventIndex event, BlockId block) {
    return {.kind = Step::Kind::kRelease, .event = event, .block = block};
}

// Three steps, each with a larger block than the previous one, so a cached block never fits.
ReplayScript growing() {
    ReplayScript script;
    script.streams = {0};
    for (EventIndex i = 0; i < 3; ++i) {
        script.steps.push_back(allocate(2 * i, 40 + 20 * i));
        script.steps.push_back(release(2 * i + 1, 2 * i));
    }
    return script;
}

// A lasting block is allocated between two temporary ones, so it lies in the middle of a segment.
ReplayScript pinned() {
    ReplayScript script;
    script.streams = {0};
    script.steps.push_back(allocate(0, 100));
    script.steps.push_back(release(1, 0));
    script.steps.push_back(allocate(2, 40));
    script.steps.push_back(allocate(3, 100));
    script.steps.push_back(release(4, 3));
    return script;
}

SweepContext context_of(std::uint64_t capacity_bytes) {
    return {.fidelity_exact = true,
            .recorded_config = {},
            .recorded_capacity_bytes = capacity_bytes,
            .rules = {}};
}

std::vector<WhatIfRow> replay_all(const ReplayScript& script,
                                  const std::vector<Candidate>& candidates,
                                  const SweepContext& context) {
    auto rows = sweep(script, candidates, context, 1);
    REQUIRE(rows.ok());
    return std::move(rows).value();
}

WhatIfRow changed_row(const ReplayScript& script,
                      ScriptChange change,
                      Remedy remedy,
                      std::uint64_t capacity_bytes = 4096 * kMiB) {
    return replay_all(script,
                      {{.name = "x",
                        .config = {},
                        .capacity_bytes = capacity_bytes,
                        .total_bytes = capacity_bytes,
                        .remedy = remedy,
                        .change = std::make_shared<const ScriptChange>(std::move(change))}},
                      context_of(capacity_bytes))
        .front();
}

WhatIfRow recorded_row(const ReplayScript& script, std::uint64_t capacity_bytes = 4096 * kMiB) {
    return replay_all(script,
                      {{.name = "as run",
                        .config = {},
                        .capacity_bytes = capacity_bytes,
                        .total_bytes = capacity_bytes}},
                      context_of(capacity_bytes))
        .front();
}

}  // namespace

TEST_CASE("emptying the cache is replayed like a program that empties it there") {
    const ReplayScript script = growing();
    CHECK(recorded_row(script).result.statistics.reserved.peak == 180 * kMiB);
    const WhatIfRow row =
        changed_row(script, {ScriptChange::Kind::kEmptyCache, {1, 3, 5}}, Remedy::kEmptyCache);
    CHECK(row.row_class == RowClass::kExact);
    CHECK_FALSE(row.is_recorded);
    CHECK(row.result.statistics.reserved.peak == 80 * kMiB);
    CHECK(row.result.statistics.segments_freed == 3);
    SECTION("empty_cache() waits once for each call and each released segment") {
        CHECK(synchronisations(row) == 6);
        const RowCost cost = cost_of(row, recorded_row(script), {.alloc_ns = 10, .free_ns = 100});
        CHECK(cost.driver_allocs == 0);
        CHECK(cost.driver_frees == 3);
        CHECK(cost.synchronisations == 6);
        REQUIRE(cost.time_ns);
        CHECK(*cost.time_ns == 300);
        CHECK_FALSE(cost_of(row, recorded_row(script), {}).time_ns);
    }
}

TEST_CASE("blocks allocated first, or from their own pool, block no free memory") {
    const ReplayScript script = pinned();
    REQUIRE(can_move_blocks(script));
    CHECK(recorded_row(script).result.statistics.reserved.peak == 200 * kMiB);
    const WhatIfRow first =
        changed_row(script, {ScriptChange::Kind::kFirst, {2}}, Remedy::kMoveFirst);
    CHECK(first.result.statistics.reserved.peak == 140 * kMiB);
    CHECK(first.row_class == RowClass::kEstimate);
    const WhatIfRow pool =
        changed_row(script, {ScriptChange::Kind::kOwnPool, {2}}, Remedy::kOwnPool);
    CHECK(pool.result.statistics.reserved.peak == 140 * kMiB);
    CHECK(pool.row_class == RowClass::kEstimate);
    SECTION("but not if a later checkpoint replaces the state") {
        ReplayScript in_parts = script;
        in_parts.checkpoints.emplace_back();
        in_parts.steps.push_back({.kind = Step::Kind::kAdopt, .event = 5});
        CHECK_FALSE(can_move_blocks(in_parts));
    }
}

TEST_CASE("the effect of an advice follows from its replay") {
    const ReplayScript script = growing();
    std::vector<WhatIfRow> rows = {recorded_row(script)};
    REQUIRE(rows.front().is_recorded);
    for (const char* config : {"expandable_segments:True", "max_split_size_mb:64"}) {
        rows.push_back(replay_all(script,
                                  {{.name = config,
                                    .config = config,
                                    .capacity_bytes = 4096 * kMiB,
                                    .total_bytes = 4096 * kMiB}},
                                  context_of(4096 * kMiB))
                           .front());
    }
    rows.push_back(
        changed_row(script, {ScriptChange::Kind::kEmptyCache, {1, 3}}, Remedy::kEmptyCache));
    const auto advice = judge_advice(rows);
    const auto named = [&advice](std::string_view name) -> const Advice& {
        const auto found = std::find_if(
            advice.begin(), advice.end(), [name](const Advice& one) { return one.name == name; });
        REQUIRE(found != advice.end());
        return *found;
    };
    CHECK(named("expandable_segments").effect == Advice::Effect::kHelped);
    CHECK(named("expandable_segments").saved_bytes == 100 * kMiB);
    CHECK(named("max_split_size_mb").effect == Advice::Effect::kNothing);
    CHECK(named("torch.cuda.empty_cache()").effect == Advice::Effect::kHelped);
    CHECK(named("garbage_collection_threshold").effect == Advice::Effect::kNotReplayed);

    rows.back().usable = true;
    rows[1].usable = false;
    rows[1].usable_reason = "event 7";
    const auto again = judge_advice(rows);
    CHECK(again.front().effect == Advice::Effect::kNotUsable);
    CHECK(again.front().reason == "event 7");
}

TEST_CASE("advice to use less memory gives the most that each kind of memory could save") {
    const MemoryByKind kinds{.parameters = 600,
                             .gradients = 400,
                             .optimizer_state = 2000,
                             .activations = 300 * kMiB,
                             .allocated_bytes = 800 * kMiB};
    const Shortage shortage{.requested_bytes = 40 * kMiB, .missing_bytes = 200 * kMiB};
    const auto advice =
        less_memory_advice(HeldAtPeak{.live_bytes = 10, .older_bytes = 4}, kinds, shortage);
    std::map<std::string, Advice> named;
    for (const Advice& one : advice) {
        named[one.key] = one;
        CHECK(one.less_memory);
        CHECK(one.row_class == RowClass::kEstimate);
        CHECK(one.effect == Advice::Effect::kNotReplayed);
    }
    CHECK(named.size() == 5);
    CHECK(named["collect"].saved_bytes == 4);
    CHECK_FALSE(named["collect"].can_be_enough.has_value());  // it includes memory in use
    CHECK(named["checkpointing"].saved_bytes == 300 * kMiB);
    CHECK(named["checkpointing"].can_be_enough == true);
    CHECK(named["autocast"].saved_bytes == 150 * kMiB);
    CHECK(named["autocast"].can_be_enough == false);
    CHECK(named["half_precision"].saved_bytes == 500);
    CHECK(named["optimizer_8bit"].saved_bytes == 1500);
    CHECK(named["checkpointing"].reason ==
          "at most the 300 MiB that activations hold of 800 MiB (estimate); can be enough for the "
          "failed request");
    CHECK(named["autocast"].reason ==
          "at most 150 MiB (estimate): half of the 300 MiB of activations, if these have 32 bits "
          "per number (not recorded); not enough for the failed request");
}

TEST_CASE("numbers of fewer bits also make the failed request smaller, checkpointing does not") {
    const MemoryByKind kinds{.activations = 300 * kMiB, .allocated_bytes = 800 * kMiB};
    const auto enough = [&](std::uint64_t requested_bytes, std::uint64_t missing_bytes) {
        const auto advice = less_memory_advice(
            std::nullopt,
            kinds,
            {.requested_bytes = requested_bytes, .missing_bytes = missing_bytes});
        REQUIRE(advice.size() == 3);            // kinds without memory have no entry
        CHECK(advice.back().key == "collect");  // nothing is known about it: it is last
        return std::pair(advice[0].can_be_enough, advice[1].can_be_enough);
    };
    CHECK(enough(400 * kMiB, 300 * kMiB) == std::pair(std::optional(true), std::optional(true)));
    CHECK(enough(400 * kMiB, 340 * kMiB) == std::pair(std::optional(false), std::optional(true)));
    CHECK(enough(400 * kMiB, 360 * kMiB) == std::pair(std::optional(false), std::optional(false)));
}

TEST_CASE("a failed request of another kind does not shrink") {
    const MemoryByKind kinds{.optimizer_state = 400 * kMiB, .allocated_bytes = 800 * kMiB};
    const auto enough = [&](std::string_view kind) {
        return less_memory_advice(
                   std::nullopt,
                   kinds,
                   {.requested_bytes = 400 * kMiB, .missing_bytes = 350 * kMiB, .kind = kind})
            .front()
            .can_be_enough;
    };
    CHECK(enough("activations") == false);
    CHECK(enough("optimizer state") == true);
    CHECK(enough("") == true);  // not known
}

TEST_CASE("without a shortage, advice to use less memory is compared with nothing") {
    const auto advice = less_memory_advice(
        std::nullopt, {.optimizer_state = 400 * kMiB, .allocated_bytes = 800 * kMiB}, {});
    REQUIRE(advice.size() == 2);
    CHECK(advice[0].saved_bytes == 300 * static_cast<std::int64_t>(kMiB));
    CHECK_FALSE(advice[0].can_be_enough.has_value());
    CHECK(advice[0].reason.find("enough") == std::string::npos);
}

TEST_CASE("an advice is in force if it is among the recorded settings") {
    WhatIfRow recorded;
    recorded.candidate.config = "expandable_segments:True,max_split_size_mb:128";
    recorded.is_recorded = true;
    recorded.result.statistics.reserved.peak = 200 * kMiB;
    WhatIfRow other = recorded;
    other.is_recorded = false;
    other.candidate.config = "max_split_size_mb:20";
    WhatIfRow rounded = other;
    rounded.candidate.config = "roundup_power2_divisions:4";
    rounded.result.statistics.reserved.peak = 100 * kMiB;
    const auto advice = judge_advice({recorded, other, rounded});
    const auto of = [&advice](std::string_view key) {
        return *std::find_if(
            advice.begin(), advice.end(), [key](const Advice& one) { return one.key == key; });
    };
    CHECK(of("expandable_segments").effect == Advice::Effect::kInForce);
    CHECK(of("max_split_size_mb").effect == Advice::Effect::kInForce);
    CHECK(of("max_split_size_mb").reason.empty());
    // This row lacks the recorded settings, and says so.
    CHECK(of("roundup_power2_divisions").effect == Advice::Effect::kHelped);
    CHECK(of("roundup_power2_divisions").reason == "in place of the recorded settings");
    CHECK(setting_keys("a:1,b:[2,c:3").contains("b"));
}

TEST_CASE("a card is enough only if libraries outside the pool have room as well") {
    ReplayScript script = growing();
    // Next to 40 MiB of others, while the pool has 180 MiB.
    script.libraries.push_back({.event = 100,
                                .asked_bytes = 100 * kMiB,
                                .device_free_bytes = 0,
                                .pool_bytes = 180 * kMiB,
                                .beside_bytes = 40 * static_cast<std::int64_t>(kMiB)});
    const auto scan = [&] {
        const auto scans = scan_capacities(script,
                                           {{.name = "default settings", .config = {}}},
                                           context_of(4096 * kMiB),
                                           80 * kMiB,
                                           0);
        REQUIRE(scans.ok());
        return scans->front();
    };
    const CapacityScan found = scan();
    CHECK(found.enough_bytes == 320 * kMiB);
    CHECK(found.least_fits <= 320 * kMiB);
    CHECK(found.least_fits > 180 * kMiB);        // cached segments may be released before
    CHECK(found.row_class == RowClass::kBound);  // the trace ends with it
    script.libraries.front().asked_bytes = ~std::uint64_t{0};  // as in a damaged trace
    CHECK(scan().least_fits == 0);
    CHECK(scan().least_card_bytes == 0);
}

TEST_CASE("if a fraction of the card is the limit, larger cards are enough") {
    // At most 180 MiB are reserved and 80 MiB are in use. With a fraction of 0.02, cards of 4 GiB
    // and more are enough.
    const bool by_setting = GENERATE(true, false);
    ReplayScript script = growing();
    std::string config;
    if (by_setting) {
        config = "per_process_memory_fraction:0.02";
    } else {
        script = {};
        script.streams = {0};
        script.steps.push_back(
            {.kind = Step::Kind::kMemoryFraction, .value = std::bit_cast<std::uint64_t>(0.02)});
        const ReplayScript all = growing();
        for (std::size_t i = 0; i < all.steps.size(); ++i) {
            script.steps.push_back(all.steps[i]);
        }
    }
    const auto scans = scan_capacities(script,
                                       {{.name = "as recorded", .config = config}},
                                       context_of(4096 * kMiB),
                                       80 * kMiB,
                                       100 * kMiB);
    REQUIRE(scans.ok());
    const CapacityScan& scan = scans->front();
    // 180 MiB are 0.02 of 9,000 MiB, of which others use 100 MiB.
    CHECK(scan.enough_bytes >= 8900 * kMiB);
    CHECK(scan.enough_bytes <= 8902 * kMiB);
    CHECK(scan.least_fits >= 3900 * kMiB);
    CHECK(scan.least_fits <= scan.enough_bytes);
    CHECK(scan.least_card_bytes == 4096 * kMiB);
    CHECK(scan.failing_cards.empty());

    // With a fraction of zero no card is enough, and none is named.
    const auto never =
        scan_capacities(growing(),
                        {{.name = "none", .config = "per_process_memory_fraction:0.000000000001"}},
                        context_of(4096 * kMiB),
                        80 * kMiB,
                        0);
    REQUIRE(never.ok());
    CHECK(never->front().least_card_bytes == 0);
}

TEST_CASE("combinations add another kind of change to the best usable row") {
    const SweepContext context = context_of(4096 * kMiB);
    std::vector<WhatIfRow> rows(4);
    const char* configs[] = {
        "", "expandable_segments:True", "roundup_power2_divisions:4", "roundup_power2_divisions:8"};
    const std::uint64_t peaks[] = {200, 100, 150, 160};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].candidate.name = configs[i];
        rows[i].candidate.config = configs[i];
        rows[i].result.statistics.reserved.peak = peaks[i] * kMiB;
    }
    auto candidates = combine(rows, rows.front(), context);
    REQUIRE(candidates.size() == 2);
    CHECK(candidates[0].config == "expandable_segments:True,roundup_power2_divisions:4");
    CHECK(candidates[1].config == "expandable_segments:True,roundup_power2_divisions:8");
    rows[1].usable = false;
    CHECK(combine(rows, rows.front(), context).empty());
}

TEST_CASE("settings that exclude each other are not combined") {
    SweepContext context = context_of(4096 * kMiB);
    std::vector<WhatIfRow> rows(3);
    const char* configs[] = {"", "large_segment_size_mb:64", "max_split_size_mb:20"};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].candidate.name = configs[i];
        rows[i].candidate.config = configs[i];
        rows[i].result.statistics.reserved.peak = (100 - 10 * (2 - i) * i) * kMiB;
    }
    CHECK(combine(rows, rows.front(), context)
              .empty());  // PyTorch refuses a split size below the segment size
    rows[2].candidate.config = "max_split_size_mb:64";
    CHECK(combine(rows, rows.front(), context).size() == 1);
}

TEST_CASE("a scan gives the smallest capacity that fits, the largest that fails, and cards") {
    ReplayScript script = growing();
    const auto scans = scan_capacities(script,
                                       {{.name = "default settings", .config = {}}},
                                       context_of(4096 * kMiB),
                                       80 * kMiB,
                                       0);
    REQUIRE(scans.ok());
    REQUIRE(scans->size() == 1);
    const CapacityScan& scan = scans->front();
    CHECK(scan.enough_bytes == 180 * kMiB);
    CHECK(scan.least_fits == 80 * kMiB);  // the pool releases its cache and retries
    CHECK(scan.largest_fails == 78 * kMiB);
    CHECK(scan.least_card_bytes == 4096 * kMiB);
    CHECK(scan.row_class == RowClass::kExact);
    SECTION("a capacity below the need fails") {
        const auto below = scan_capacities(script,
                                           {{.name = "default settings", .config = {}}},
                                           context_of(4096 * kMiB),
                                           40 * kMiB,
                                           0);
        REQUIRE(below.ok());
        CHECK(below->front().least_fits == 80 * kMiB);
        CHECK(below->front().largest_fails == 78 * kMiB);
        CHECK(below->front().step_bytes == 2 * kMiB);
    }
    SECTION("a program that queries free memory gets estimates") {
        script.steps.push_back({.kind = Step::Kind::kMemoryInfo, .event = 9, .value = kMiB});
        const auto other = scan_capacities(script,
                                           {{.name = "default settings", .config = {}}},
                                           context_of(4096 * kMiB),
                                           80 * kMiB,
                                           0);
        REQUIRE(other.ok());
        CHECK(other->front().row_class == RowClass::kEstimate);
        CHECK(find_adaptation(script).asks == 9);
    }
}

TEST_CASE("the near miss is the smallest room left for a request during the run") {
    const ReplayScript script = growing();
    auto pool = make_pool(
        "pytorch", "", std::make_unique<FixedDevice>(300 * kMiB, 300 * kMiB, 2 * kMiB), {0});
    REQUIRE(pool.ok());
    const NearMiss near = find_near_miss(script, **pool, nullptr);
    CHECK(near.requests == 3);
    CHECK(near.looked_at == 3);
    CHECK(near.least.bytes == 220 * kMiB);  // 300 MiB, 80 of them in use, the rest can be released
    CHECK(near.least.event == 4);
    REQUIRE_FALSE(near.over_time.empty());
}

TEST_CASE("steps end with their phase, or at the next iteration") {
    fragtrace::testing::Events events;
    Timeline& timeline = events.timeline;
    for (int i = 0; i < 12; ++i) {
        events.add(fragtrace::EventKind::kBlockAlloc, 0x1000, 512, 512);
    }
    Iterations iterations;
    CHECK(find_iteration_ends(timeline, iterations).empty());
    iterations.begins = {1, 4, 8};
    iterations.source = Iterations::Source::kRecurrence;
    CHECK(find_iteration_ends(timeline, iterations).ends == std::vector<EventIndex>{3, 7});
    for (const EventIndex first : {1u, 2u, 4u, 8u}) {
        timeline.phases.push_back({.name = 1, .begin = first, .end = first + 2});
    }
    timeline.phases.back().end = 12;  // the trace ends within this step
    iterations.source = Iterations::Source::kPhases;
    iterations.phase = "train #";
    const IterationEnds phases = find_iteration_ends(timeline, iterations);
    CHECK(phases.ends == std::vector<EventIndex>{3, 6});
    CHECK(phases.phase == "train #");
}

TEST_CASE("the event that rules out a row is named") {
    fragtrace::testing::Events events;
    events.add(fragtrace::EventKind::kExport, 0x7f0000000000);
    const Obstacles obstacles = find_obstacles(events.timeline, 0);
    CHECK(obstacles.shared == 0);
    WhatIfRow row;
    row.candidate.config = "expandable_segments:True";
    judge_use(obstacles, "", &row);
    CHECK_FALSE(row.usable);
    CHECK(row.usable_reason.find("event 0") == 0);
    WhatIfRow as_run;
    as_run.candidate.config = "expandable_segments:True";
    judge_use(obstacles, "expandable_segments:True", &as_run);
    CHECK(as_run.usable);
    WhatIfRow uncached;
    uncached.candidate.remedy = Remedy::kCachingOff;
    uncached.candidate.pool = "none";
    Obstacles captures;
    captures.graph = 4;
    judge_use(captures, "", &uncached);
    CHECK_FALSE(uncached.usable);
    CHECK(uncached.usable_reason.find("event 4") == 0);
}

TEST_CASE("MemPool is ruled out only for a known release without it") {
    const auto usable_in = [](const char* release) {
        Obstacles obstacles;
        obstacles.torch_version = release;
        WhatIfRow row;
        row.candidate.remedy = Remedy::kOwnPool;
        judge_use(obstacles, "", &row);
        return row.usable;
    };
    CHECK_FALSE(usable_in("2.4.1"));
    CHECK_FALSE(usable_in("2.4.0a0+git1"));
    CHECK(usable_in("2.5"));
    CHECK(usable_in("2.15.0+cu128"));
    CHECK(usable_in("2.2 or later"));  // from a snapshot, which does not name its release
    CHECK(usable_in(""));
}
