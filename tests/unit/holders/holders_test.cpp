// Memory by category and by line at one instant, and the difference to the same place of an earlier
// iteration.
#include "analyzer/analysis/holders/holders.h"

#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

TEST_CASE("categories and places add up exactly to the allocated bytes") {
    MadeUpRun run;
    std::mt19937 random(5);
    const std::vector<OriginId> lines = {
        run.line("load"),
        run.origin(run.frame(0, "/torch/optim/adam.py", "step")),
        run.origin(run.frame(0, "/torch/nn/modules/module.py", "Module._call_impl")),
        0};
    HeapSnapshot heap;
    std::uint64_t live = 0;
    for (int i = 0; i < 300; ++i) {
        HeapBlock block;
        block.size_bytes = 512 * (1 + random() % 1000);
        block.state = static_cast<BlockState>(random() % 3);
        block.allocated_by = random() % 20 == 0
                                 ? kNoEvent
                                 : run.alloc(lines[random() % lines.size()], block.size_bytes);
        live += block.state == BlockState::kLive ? block.size_bytes : 0;
        heap.blocks.push_back(block);
    }
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder rules(run.timeline, &symbols, nullptr);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    const auto end = static_cast<EventIndex>(run.timeline.events.size());
    const Holders holders = holders_of(run.timeline, heap, end, history, &marks, &rules, &symbols);
    std::uint64_t in_categories = 0;
    for (const Holding& holding : holders.categories) {
        in_categories += holding.bytes;
    }
    std::int64_t in_places = 0;
    for (const HoldingLine& place : holders.places) {
        in_places += place.held.bytes;
    }
    CHECK(holders.allocated_bytes == live);
    CHECK(in_categories == live);
    CHECK(in_places == static_cast<std::int64_t>(live));
    CHECK(holders.categories.size() == 3);
}

TEST_CASE("an out-of-memory is compared with the same place of the last good iteration") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId forward = run.line("forward");
    const OriginId leak = run.line("remember");
    const OriginId last = run.line("loss");
    const OriginId cache = run.line("cache");
    std::vector<EventIndex> failed;
    const EventIndex cached = run.alloc(cache, 50 * kMiB);
    EventIndex place = 0;
    for (int step = 0; step < 6; ++step) {
        // The failing batch is three times as large. The previous batch was as large and failed
        // too.
        if (step == 4) {
            run.free(cached);
        }
        const std::uint64_t size = step < 4 ? 1 : 3;
        const EventIndex batch = run.alloc(data, size * kMiB);
        std::vector<EventIndex> activations;
        for (int layer = 0; layer < 4; ++layer) {
            activations.push_back(run.alloc(forward, 2 * size * kMiB));
            if (step == 3 && layer == 2) {
                place = activations.back();
            }
            if (step >= 4 && layer == 2) {
                failed.push_back(run.fail(forward));
                break;
            }
        }
        if (step < 4) {
            run.free(run.alloc(last, 512));
        }
        run.alloc(leak, kMiB);
        for (const EventIndex activation : activations) {
            run.free(activation);
        }
        run.free(batch);
    }
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder rules(run.timeline, &symbols, nullptr);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    REQUIRE(history.iterations.begins.size() == 6);
    const IterationDifference difference =
        difference_to_last_good(run.timeline, failed.back(), failed, history, rules, &symbols);
    CHECK(difference.iteration == 6);
    CHECK(difference.against == 4);
    CHECK(difference.place == place);
    CHECK(difference.asked_bytes == 21 * kMiB);
    CHECK(difference.asked_bytes_then == 7 * kMiB);
    CHECK(difference.bytes ==
          (14 + 2 - 50) * static_cast<std::int64_t>(kMiB));  // two leaked blocks more, no cache
    REQUIRE(difference.places.size() == 4);
    CHECK(difference.places[0].held.label == "me/train.py:1 cache");
    CHECK(difference.places[0].held.bytes == -50 * static_cast<std::int64_t>(kMiB));
    CHECK(difference.places[1].held.label == "me/train.py:1 forward");
    CHECK(difference.places[1].held.bytes == 12 * kMiB);
    CHECK(difference.places[2].held.bytes == 2 * kMiB);
}

TEST_CASE("an out-of-memory in the first iteration has no comparison") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    run.alloc(data, kMiB);
    const EventIndex failed = run.fail(data);
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder rules(run.timeline, &symbols, nullptr);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    CHECK(difference_to_last_good(run.timeline, failed, {failed}, history, rules, &symbols)
              .iteration == 0);
}

TEST_CASE("memory from before the first step counts as earlier, but not as old") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    HeapSnapshot heap;
    const auto hold = [&heap](EventIndex born) {
        heap.blocks.push_back(
            {.size_bytes = kMiB, .allocated_by = born, .state = BlockState::kLive});
    };
    hold(run.alloc(run.line("make_model"), kMiB));
    const OriginId leak = run.line("remember");
    for (int step = 0; step < 10; ++step) {
        run.free(run.alloc(data, kMiB));
        hold(run.alloc(leak, kMiB));
    }
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder rules(run.timeline, &symbols, nullptr);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    REQUIRE(history.iterations.found());
    const auto end = static_cast<EventIndex>(run.timeline.events.size());
    const Holders holders = holders_of(run.timeline, heap, end, history, &marks, &rules, &symbols);
    REQUIRE(holders.categories.size() == 1);
    CHECK(holders.categories[0].bytes == 11 * kMiB);
    CHECK(holders.categories[0].earlier_bytes == 10 * kMiB);  // all but the last step's block
    CHECK(holders.categories[0].old_bytes == 8 * kMiB);       // blocks of steps 1 to 8
}
