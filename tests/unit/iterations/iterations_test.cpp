// The start of each iteration, in runs made by hand.
#include "analyzer/analysis/iterations/iterations.h"

#include "analyzer/analysis/iterations/recurrence.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

Iterations iterations_of(const MadeUpRun& run) {
    return find_iterations(run.timeline, requests_of(run.timeline, 0, true));
}

// A training: data, three layers, a loss, and a backward pass in reverse order.
struct Training {
    MadeUpRun run;
    std::uint32_t main = run.frame(0, "/home/me/train.py", "main");
    std::uint32_t call =
        run.frame(main, "/site-packages/torch/nn/modules/module.py", "Module._call_impl");
    OriginId data = run.origin(run.frame(main, "/home/me/train.py", "load"));
    OriginId layer = run.origin(run.frame(call, "/home/me/train.py", "Layer.forward"));
    OriginId activation = run.origin(run.frame(call, "/home/me/train.py", "Layer.activate"));
    OriginId loss = run.origin(run.frame(main, "/home/me/train.py", "loss"));
    OriginId gradient = run.origin(run.frame(main, "/torch/_tensor.py", "Tensor.backward"));
    OriginId temporary = run.origin(run.frame(main, "/home/me/train.py", "clip"));
    std::vector<EventIndex> begins;

    // `layers` differs if the length of a batch decides how much work is done. `cut`: the trace
    // ends after so many requests.
    void step(int layers, std::uint64_t bytes, int cut = 1000) {
        begins.push_back(run.alloc(data, bytes));
        for (int i = 0; i < layers && --cut > 0; ++i) {
            run.alloc(layer, bytes);
            run.free(run.alloc(activation, 2 * bytes));
        }
        for (const OriginId origin : {loss, gradient, temporary}) {
            if (--cut > 0) {
                run.free(run.alloc(origin, bytes));
            }
        }
    }
};

}  // namespace

TEST_CASE("steps of varying length are found, and begin with their first request") {
    Training training;
    std::mt19937 random(3);
    for (int step = 0; step < 12; ++step) {
        training.step(2 + static_cast<int>(random() % 9), 512 * (1 + random() % 100));
    }
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kRecurrence);
    CHECK(found.begins == training.begins);
    CHECK(found.anchor == training.data);
    CHECK(found.match_rate == 1.0);
    CHECK(found.size_match_rate < 0.9);
    CHECK(found.of(training.begins[3] - 1) == 3);
    CHECK(found.of(training.begins[3]) == 4);
}

TEST_CASE("one-time allocations and a last step that is cut short do not matter") {
    Training training;
    const OriginId weights = training.run.line("Model.__init__");
    for (int i = 0; i < 30; ++i) {
        training.run.alloc(weights, 4096);
    }
    training.step(4, 1024);
    training.step(4, 1024, 3);
    const Iterations found = iterations_of(training.run);
    CHECK(found.begins == training.begins);
    CHECK(found.match_rate == 1.0);
}

TEST_CASE("layers are not iterations, since their common caller is the model's call") {
    Training training;
    training.step(40, 1024, 30);  // the trace ends in the first forward pass
    CHECK_FALSE(iterations_of(training.run).found());
}

TEST_CASE("a loop in a function named forward is not the training loop") {
    MadeUpRun run;
    const std::uint32_t forward = run.frame(0, "/home/me/model.py", "Model.forward");
    const OriginId norm = run.origin(run.frame(forward, "/home/me/model.py", "norm"));
    const OriginId product = run.origin(run.frame(forward, "/home/me/model.py", "product"));
    for (int layer = 0; layer < 12; ++layer) {
        run.alloc(norm);
        run.alloc(product);
    }
    CHECK_FALSE(iterations_of(run).found());
}

TEST_CASE("PyTorch's own ranges for the loader and the optimizer are not steps") {
    Training training;
    for (int step = 0; step < 6; ++step) {
        training.step(3, 1024);
        training.run.begin_phase("enumerate(DataLoader)#_SingleProcessDataLoaderIter",
                                 RangeKind::kNvtx);
        training.run.begin_phase("Optimizer.step#AdamW.step", RangeKind::kNvtx);
    }
    CHECK(iterations_of(training.run).source == Iterations::Source::kRecurrence);
}

TEST_CASE("requests that never repeat give no iterations") {
    MadeUpRun run;
    for (int i = 0; i < 50; ++i) {
        run.alloc(run.line("f" + std::to_string(i)));
    }
    CHECK_FALSE(iterations_of(run).found());
    CHECK_FALSE(iterations_of(MadeUpRun()).found());
}

TEST_CASE("without stacks the iterations follow from the sizes") {
    MadeUpRun run;
    std::vector<EventIndex> begins;
    for (int step = 0; step < 5; ++step) {
        begins.push_back(run.alloc(0, 1024));
        run.alloc(0, 2048);
        run.alloc(0, 4096);
    }
    const Iterations found = iterations_of(run);
    CHECK(found.begins == begins);
}

TEST_CASE("a step that fails half-way is its own iteration") {
    Training training;
    for (int step = 0; step < 9; ++step) {
        training.step(3, 1024, step == 5 ? 2 : 1000);
    }
    CHECK(iterations_of(training.run).begins == training.begins);
}

TEST_CASE("phases named as steps take precedence over repeating requests, for any step number") {
    Training training;
    std::vector<EventIndex> begins;
    training.run.begin_phase("epoch 1");
    for (int step = 0; step < 6; ++step) {
        training.step(3, 1024);
        training.run.begin_phase("ProfilerStep#" + std::to_string(step), RangeKind::kNvtx);
        begins.push_back(training.run.timeline.phases.back().begin);
    }
    training.step(3, 1024);
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kPhases);
    CHECK(found.phase == "ProfilerStep#");
    CHECK(found.begins == begins);
}

TEST_CASE("ranges of a library do not replace iterations found in the requests") {
    Training training;
    for (int step = 0; step < 6; ++step) {
        training.step(3, 1024);
        training.run.begin_phase("cub::DeviceRadixSort", RangeKind::kNvtx);
        training.run.alloc(training.temporary);
        training.run.begin_phase("cub::DeviceRadixSort", RangeKind::kNvtx);
    }
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kRecurrence);
    CHECK(found.begins == training.begins);
}

TEST_CASE("several micro-batches and one optimizer step form one iteration") {
    Training training;
    const std::uint32_t optimizer =
        training.run.frame(training.main, "/site-packages/torch/optim/adamw.py", "AdamW.step");
    const OriginId update = training.run.origin(optimizer);
    std::vector<EventIndex> steps;
    const int parts = GENERATE(1, 4);
    for (int step = 0; step < 6; ++step) {
        for (int part = 0; part < parts; ++part) {
            training.step(3, 1024);
            if (part == 0) {
                steps.push_back(training.begins.back());
            }
        }
        training.run.free(training.run.alloc(update, 2048));
    }
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kRecurrence);
    CHECK(found.begins == steps);
    CHECK(found.match_rate == 1.0);
}

TEST_CASE("without an allocating optimizer each micro-batch counts as an iteration") {
    Training training;
    for (int step = 0; step < 8; ++step) {
        training.step(3, 1024);
    }
    CHECK(iterations_of(training.run).begins == training.begins);
}

TEST_CASE("if two threads mark steps, the thread that allocates counts") {
    Training training;
    std::vector<EventIndex> begins;
    for (int step = 0; step < 6; ++step) {
        training.run.begin_phase("step");
        begins.push_back(training.run.timeline.phases.back().begin);
        training.step(3, 1024);
        // The loader's thread runs ahead and marks twice as many steps.
        for (int i = 0; i < 2; ++i) {
            training.run.begin_phase("step");
            training.run.timeline.phases.back().thread = 2;
        }
    }
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kPhases);
    CHECK(found.begins == begins);
}

TEST_CASE("ranges of a library are not steps, whatever their name") {
    Training training;
    for (int step = 0; step < 6; ++step) {
        training.step(3, 1024);
        training.run.begin_phase("CCCL: cub::DeviceMemcpy::Batched", RangeKind::kNvtx);
    }
    const Iterations found = iterations_of(training.run);
    CHECK(found.source == Iterations::Source::kRecurrence);
    CHECK(found.begins == training.begins);
}

TEST_CASE("the match rate also counts requests found in a neighbouring stretch") {
    const MatchRate match = match_rate({0, 1, 2, 3, 0, 1, 4, 5, 0, 1, 4, 5}, 6, {0, 4, 8});
    CHECK(match.requests == 12);
    CHECK(match.matched == 10);  // 2 and 3 occur in no other stretch
    CHECK(match.last_matched == 4);
}
