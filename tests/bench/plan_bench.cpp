// Lifetimes per second of planned placement: made-up training of several sizes, and the problem in
// FRAGTRACE_BENCH_PROBLEM (CSV), if it is set. The label says how far the plan is above the load,
// and which method made it.
#include "analyzer/plan/csv.h"
#include "analyzer/plan/planner.h"

#include <benchmark/benchmark.h>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

// A long-lived set, and iterations of changing length. Activations live until the backward pass,
// which needs its own buffers, and workspaces are allocated and freed.
std::vector<Lifetime> training(std::size_t count) {
    std::vector<Lifetime> lifetimes;
    std::mt19937_64 random(1);
    std::uint64_t time = 0;
    const auto allocate = [&](std::uint64_t bytes) {
        lifetimes.push_back({time++, ~std::uint64_t{0}, (bytes + 511) / 512 * 512});
        return lifetimes.size() - 1;
    };
    const auto release = [&](std::size_t buffer) { lifetimes[buffer].end = time++; };
    for (int i = 0; i < 600; ++i) {
        allocate(512 + random() % (4u << 20));
    }
    while (lifetimes.size() < count) {
        std::vector<std::size_t> activations;
        const std::uint64_t length = 256 + random() % 768;
        for (std::uint64_t layer = 0; layer < 300; ++layer) {
            activations.push_back(allocate((1 + layer % 7) * length * 3072));
            release(allocate(length * 1000 * (1 + layer % 3)));
        }
        while (!activations.empty()) {
            const std::size_t gradient = allocate(lifetimes[activations.back()].size_bytes / 2);
            release(activations.back());
            release(gradient);
            activations.pop_back();
        }
    }
    return lifetimes;
}

void plan(benchmark::State& state, const std::vector<Lifetime>& lifetimes) {
    Plan made;
    for (auto _ : state) {
        made = plan_placement(lifetimes);
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(lifetimes.size()));
    state.SetLabel(fmt::format("{:+.2f} %, {}",
                               100.0 * static_cast<double>(made.height_bytes - made.load_bytes) /
                                   static_cast<double>(made.load_bytes),
                               made.method));
}

void plan_training(benchmark::State& state) {
    plan(state, training(static_cast<std::size_t>(state.range(0))));
}

void plan_problem(benchmark::State& state) {
    const char* path = std::getenv("FRAGTRACE_BENCH_PROBLEM");
    if (path == nullptr) {
        state.SkipWithError("FRAGTRACE_BENCH_PROBLEM is not set");
        return;
    }
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const auto problem = read_problem(text.str(), path);
    if (!problem) {
        state.SkipWithError(problem.error().message.c_str());
        return;
    }
    plan(state, problem->lifetimes);
}

BENCHMARK(plan_training)
    ->Arg(10'000)
    ->Arg(500'000)
    ->Arg(5'000'000)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK(plan_problem)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
