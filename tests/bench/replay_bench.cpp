// Events per second: reading a trace, and replaying it through the pytorch pool.
//
// FRAGTRACE_BENCH_TRACE names a trace; without it a synthetic script of the shape of training
// (a long-lived set, and waves of short-lived blocks of repeating sizes) is replayed.
#include "analyzer/pools/registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "analyzer/trace/reader.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <random>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

const char* trace_path() {
    return std::getenv("FRAGTRACE_BENCH_TRACE");
}

ReplayScript synthetic_script() {
    ReplayScript script;
    script.streams = {0};
    std::mt19937_64 random(1);
    BlockId next = 0;
    const auto allocate = [&](std::uint64_t bytes) {
        script.steps.push_back({.event = next, .block = next, .value = bytes});
        return next++;
    };
    const auto release = [&](BlockId block) {
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = block});
    };
    for (int i = 0; i < 600; ++i) {
        allocate(512 + random() % (4u << 20));
    }
    for (int iteration = 0; iteration < 400; ++iteration) {
        std::vector<BlockId> wave;
        const std::uint64_t length = 256 + random() % 768;
        for (std::uint64_t layer = 0; layer < 300; ++layer) {
            wave.push_back(allocate((1 + layer % 7) * length * 3072));
            if (layer % 3 == 0) {
                release(wave.back());
                wave.pop_back();
            }
        }
        while (!wave.empty()) {
            release(wave.back());
            wave.pop_back();
        }
    }
    return script;
}

ReplayScript script_to_replay() {
    if (trace_path() == nullptr) {
        return synthetic_script();
    }
    const auto timeline = read_trace(trace_path(), {});
    if (!timeline) {
        std::fprintf(stderr, "%s\n", timeline.error().message.c_str());
        std::exit(2);
    }
    return make_script(*timeline, replayable_devices(*timeline).front());
}

void replay_pytorch(benchmark::State& state, const char* config) {
    const ReplayScript script = script_to_replay();
    for (auto _ : state) {
        auto pool =
            make_pool("pytorch",
                      config,
                      std::make_unique<FixedDevice>(
                          std::uint64_t{1} << 40, std::uint64_t{1} << 40, std::uint64_t{2} << 20),
                      script.streams);
        benchmark::DoNotOptimize(replay(script, **pool).statistics.reserved.peak);
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(script.steps.size()));
}

void read_events(benchmark::State& state) {
    if (trace_path() == nullptr) {
        state.SkipWithError("FRAGTRACE_BENCH_TRACE is not set");
        return;
    }
    std::size_t events = 0;
    for (auto _ : state) {
        const auto timeline = read_trace(trace_path(), {});
        events = timeline->events.size();
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events));
}

BENCHMARK_CAPTURE(replay_pytorch, default_settings, "")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_pytorch, expandable_segments, "expandable_segments:True")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(read_events)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
