// Events per second: reading a trace, and replaying it through the pytorch pool.
//
// FRAGTRACE_BENCH_TRACE names a trace. Without it a synthetic script similar to a training is
// replayed: a long-lived set, and waves of short-lived blocks of repeating sizes.
// FRAGTRACE_BENCH_REQUESTS names a file to write the requests to, for torch_allocator_bench.
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "analyzer/trace/reader.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <unordered_map>
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

// Writes the requests for torch_allocator_bench. Blocks of other streams or pools are written like
// the others.
void write_requests(const ReplayScript& script, const char* path) {
    std::ofstream file(path, std::ios::binary);
    std::unordered_map<BlockId, std::uint64_t> numbers;
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        std::uint64_t word = step.value;
        if (step.kind == Step::Kind::kAllocate && !step.recorded_oom) {
            numbers[step.block] = next++;
        } else if (step.kind == Step::Kind::kRelease && numbers.contains(step.block)) {
            word = std::uint64_t{1} << 63 | numbers[step.block];
            numbers.erase(step.block);
        } else {
            continue;
        }
        file.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
}

void sweep_settings(benchmark::State& state) {
    const ReplayScript script = script_to_replay();
    std::vector<Candidate> candidates(64);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        candidates[i].pool = "pytorch";
        candidates[i].config = "max_split_size_mb:" + std::to_string(40 + 20 * (i / 2)) +
                               (i % 2 != 0 ? ",roundup_power2_divisions:8" : "");
        candidates[i].total_bytes = candidates[i].capacity_bytes = std::uint64_t{80} << 30;
    }
    for (auto _ : state) {
        const auto rows = sweep(script, candidates, {}, static_cast<unsigned>(state.range(0)));
        benchmark::DoNotOptimize(rows->size());
    }
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
BENCHMARK(read_events)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();
BENCHMARK(sweep_settings)
    ->Arg(1)
    ->Arg(2)
    ->Iterations(1)
    ->Unit(benchmark::kSecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace

int main(int count, char** words) {
    if (const char* requests = std::getenv("FRAGTRACE_BENCH_REQUESTS")) {
        write_requests(script_to_replay(), requests);
        return 0;
    }
    benchmark::Initialize(&count, words);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
