// Blocks that live longer than expected, in runs made by hand.
#include "analyzer/analysis/holders/survivors.h"

#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

std::vector<Survivors> survivors_in(const MadeUpRun& run, const std::vector<EventIndex>& failed) {
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    const RunHistory history = run_history(run.timeline, 0, true, &marks);
    return survivors_of(
        run.timeline, failed, history, RuleFinder(run.timeline, &symbols, nullptr), &symbols);
}

}  // namespace

TEST_CASE("blocks left by a caught out-of-memory are those that usually end in their iteration") {
    MadeUpRun run;
    const OriginId data = run.line("load");
    const OriginId forward = run.line("forward");
    const OriginId last = run.line("loss");
    std::vector<EventIndex> failed;
    for (int step = 0; step < 8; ++step) {
        const EventIndex batch = run.alloc(data, kMiB);
        const EventIndex activation = run.alloc(forward, 4 * kMiB);
        if (step == 4) {
            failed.push_back(run.fail(last));
            continue;  // the exception keeps both
        }
        run.free(run.alloc(last, 512));
        run.free(activation);
        run.free(batch);
    }
    const std::vector<Survivors> survivors = survivors_in(run, failed);
    REQUIRE(survivors.size() == 1);
    CHECK(survivors[0].of == Survivors::Of::kOutOfMemory);
    CHECK(survivors[0].iteration == 5);
    CHECK(survivors[0].bytes == 5 * kMiB);
    REQUIRE(survivors[0].places.size() == 2);
    CHECK(survivors[0].places[0].held.label == "me/train.py:1 forward");
}

TEST_CASE("blocks of a failed cell that are live in the next cell are reported") {
    MadeUpRun run;
    const OriginId model = run.line("build");
    const OriginId hidden = run.line("look");
    run.begin_phase("In [1] model", RangeKind::kCell);
    run.alloc(model, 100 * kMiB);
    run.end_phase();
    run.begin_phase("In [2] look()", RangeKind::kCell);
    const EventIndex kept = run.alloc(hidden, 64 * kMiB);
    run.free(run.alloc(hidden, 8 * kMiB));
    const EventIndex failed = run.fail(hidden);
    run.end_phase();
    run.begin_phase("In [3] print()", RangeKind::kCell);
    const bool forgotten = GENERATE(false, true);
    if (forgotten) {
        run.free(kept);
    }
    run.end_phase();
    const std::vector<Survivors> survivors = survivors_in(run, {failed});
    REQUIRE(survivors.size() == (forgotten ? 0 : 1));
    if (!forgotten) {
        CHECK(survivors[0].phase == "In [2] look()");
        CHECK(survivors[0].iteration == 0);
        CHECK(survivors[0].bytes == 64 * kMiB);
        CHECK(survivors[0].places[0].held.label == "me/train.py:1 look");
    }
}

TEST_CASE("a replaced model that is still live is reported with its lines") {
    MadeUpRun run;
    const std::uint32_t main = run.frame(0, "/home/me/train.py", "main");
    const auto line = [&](const char* file, const char* function) {
        return run.origin(run.frame(main, file, function));
    };
    const OriginId weights = line("/site-packages/torch/nn/modules/module.py", "Module._apply");
    const OriginId data = run.origin(run.frame(main, "/home/me/train.py", "load"));
    const OriginId hidden = line("/home/me/train.py", "Model.forward");
    const OriginId state = line("/site-packages/torch/optim/adamw.py", "AdamW.step");
    const bool forgotten = GENERATE(false, true);
    std::vector<EventIndex> first_model;
    EventIndex switched = 0;
    for (int model = 0; model < 2; ++model) {
        for (int i = 0; i < 4; ++i) {
            const EventIndex block = run.alloc(weights, (model == 0 ? 10 : 5) * kMiB);
            switched = model == 1 && i == 0 ? block : switched;
            if (model == 0) {
                first_model.push_back(block);
            }
        }
        if (model == 1 && forgotten) {  // Python frees the old model once the new one exists
            for (const EventIndex block : first_model) {
                run.free(block);
            }
        }
        for (int step = 0; step < 4; ++step) {
            run.free(run.alloc(data, kMiB));
            run.free(run.alloc(hidden, 4 * kMiB));
            if (step == 0) {
                const EventIndex made = run.alloc(state, 20 * kMiB);
                if (model == 0) {
                    first_model.push_back(made);
                }
            }
        }
    }
    const std::vector<Survivors> survivors = survivors_in(run, {});
    REQUIRE(survivors.size() == (forgotten ? 0 : 1));
    if (!forgotten) {
        CHECK(survivors[0].of == Survivors::Of::kModel);
        CHECK(survivors[0].event == switched);
        CHECK(survivors[0].bytes == 60 * kMiB);
        REQUIRE(survivors[0].places.size() == 2);
        CHECK(survivors[0].places[0].category == Category::kParameters);
        CHECK(survivors[0].places[0].held.bytes == 40 * static_cast<std::int64_t>(kMiB));
    }
}

TEST_CASE("a copy of a model that is not trained replaces nothing") {
    MadeUpRun run;
    const std::uint32_t main = run.frame(0, "/home/me/train.py", "main");
    const auto line = [&run, main](const std::string& file, const std::string& function) {
        return run.origin(run.frame(main, file, function));
    };
    const OriginId weights = line("/site-packages/torch/nn/modules/module.py", "Module._apply");
    const OriginId state = line("/site-packages/torch/optim/adamw.py", "AdamW.step");
    const OriginId passing = line("/site-packages/torch/optim/adamw.py", "_multi_tensor_adamw");
    const OriginId data = run.origin(run.frame(main, "/home/me/train.py", "load"));
    const OriginId hidden = line("/home/me/train.py", "Model.forward");
    const auto steps = [&](int count, std::uint64_t state_bytes) {
        for (int i = 0; i < count; ++i) {
            run.free(run.alloc(data, kMiB));
            run.free(run.alloc(hidden, 4 * kMiB));
            if (i == 0 && state_bytes != 0) {
                run.alloc(state, state_bytes);
            }
            run.free(run.alloc(passing, 40 * kMiB));
        }
    };
    run.alloc(weights, 40 * kMiB);
    std::size_t expected = 0;
    SECTION("made after some steps") {
        steps(4, 80 * kMiB);
        run.alloc(weights, 40 * kMiB);
        steps(4, 0);
    }
    SECTION("made before the first step") {
        run.alloc(weights, 40 * kMiB);
        steps(8, 80 * kMiB);
    }
    SECTION("no step has shown yet what the new model is for: it counts as the next one") {
        steps(4, 80 * kMiB);
        run.alloc(weights, 40 * kMiB);
        expected = 1;
    }
    SECTION("the optimizers of both models have no state: the new one counts as the next one") {
        steps(4, 0);
        run.alloc(weights, 40 * kMiB);
        steps(4, 0);
        expected = 1;
    }
    SECTION("only the earlier optimizer has state: the new model counts as a copy") {
        steps(4, 80 * kMiB);
        run.alloc(weights, 40 * kMiB);
        steps(4, 8 * kMiB);  // less than a quarter
    }
    SECTION("the new optimizer has less state, but some: the new model counts as the next one") {
        steps(4, 80 * kMiB);
        run.alloc(weights, 40 * kMiB);
        steps(4, 20 * kMiB);
        expected = 1;
    }
    CHECK(survivors_in(run, {}).size() == expected);
}

TEST_CASE("running a cell again reports the blocks left by its earlier run") {
    MadeUpRun run;
    const OriginId model = run.line("build");
    const OriginId once = run.line("cache");
    for (int again = 0; again < 3; ++again) {
        run.begin_phase("In [" + std::to_string(again + 4) + "] model = build()", RangeKind::kCell);
        run.alloc(model, 10 * kMiB);
        if (again == 0) {
            run.alloc(once, 30 * kMiB);  // still there, and not allocated again
        }
        run.end_phase();
    }
    const std::vector<Survivors> survivors = survivors_in(run, {});
    REQUIRE(survivors.size() == 1);
    CHECK(survivors[0].of == Survivors::Of::kPhase);
    CHECK(survivors[0].phase == "In [#] model = build()");
    CHECK(survivors[0].bytes == 10 * kMiB);
    CHECK(survivors[0].places[0].held.label == "me/train.py:1 build");
}
