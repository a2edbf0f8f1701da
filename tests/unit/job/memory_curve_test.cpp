// Memory over time in at most 512 bins.
#include "analyzer/analysis/metrics/memory_curve.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace fragtrace::analyzer;

TEST_CASE("a curve has the maximum of each bin, with the level at which the bin began") {
    MemoryCurveBuilder builder;
    builder.add(0, 100, 50);
    builder.add(10, 30, 20);
    builder.add(1024 * 3, 40, 10);  // two bins without events keep the level
    CHECK(builder.curve().bin_ns == 1024);
    CHECK(builder.curve().reserved == std::vector<std::uint64_t>{100, 30, 30, 40});
    CHECK(builder.curve().allocated == std::vector<std::uint64_t>{50, 20, 20, 20});
    CHECK(MemoryCurveBuilder().curve().bin_ns == 0);
}

TEST_CASE("bins get wider as the run goes on, and no maximum is lost") {
    std::mt19937_64 random(7);
    MemoryCurveBuilder builder;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> levels;
    std::uint64_t time = 0;
    for (int i = 0; i < 20'000; ++i) {
        time += random() % 100'000;
        levels.emplace_back(time, random() % 1'000'000);
        builder.add(time, levels.back().second, levels.back().second / 2);
    }
    const MemoryCurve& curve = builder.curve();
    CHECK(curve.reserved.size() <= MemoryCurveBuilder::kMostBins);
    CHECK(curve.reserved.size() > MemoryCurveBuilder::kMostBins / 2 - 1);
    std::vector<std::uint64_t> expected(curve.reserved.size());
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const std::uint64_t end = i + 1 < levels.size() ? levels[i + 1].first : time;
        for (std::uint64_t bin = levels[i].first / curve.bin_ns; bin * curve.bin_ns <= end; ++bin) {
            expected[bin] = std::max(expected[bin], levels[i].second);
        }
    }
    CHECK(curve.reserved == expected);
}

TEST_CASE("a finished curve says what is held after the last event, if that is less") {
    MemoryCurveBuilder builder;
    builder.add(0, 100, 50);
    CHECK(builder.finished().reserved == builder.curve().reserved);
    builder.add(10, 30, 20);
    CHECK(builder.finished().reserved == std::vector<std::uint64_t>{100, 30});
    CHECK(builder.finished().allocated == std::vector<std::uint64_t>{50, 20});
    builder.add(1024 * (MemoryCurveBuilder::kMostBins - 1), 90, 50);
    builder.add(1024 * (MemoryCurveBuilder::kMostBins - 1), 1, 1);
    CHECK(builder.curve().reserved.size() == MemoryCurveBuilder::kMostBins);
    CHECK(builder.finished().reserved.size() == MemoryCurveBuilder::kMostBins / 2 + 1);
    CHECK(builder.finished().reserved.back() == 1);
    CHECK(MemoryCurveBuilder().finished().bin_ns == 0);
}

TEST_CASE("a curve survives times that go back and the largest times") {
    MemoryCurveBuilder builder;
    builder.add(5'000, 1, 1);
    builder.add(10, 2, 2);
    builder.add(~std::uint64_t{0}, 3, 3);
    builder.add(~std::uint64_t{0} - 5, 4, 4);
    CHECK(builder.curve().reserved.size() <= MemoryCurveBuilder::kMostBins);
    CHECK(*std::max_element(builder.curve().reserved.begin(), builder.curve().reserved.end()) == 4);
}

TEST_CASE("a coarser curve has the maxima of pairs") {
    MemoryCurve curve{.bin_ns = 4, .reserved = {1, 5, 2, 3, 9}, .allocated = {1, 1, 1, 2, 3}};
    coarsen(&curve, 3);
    CHECK(curve.bin_ns == 8);
    CHECK(curve.reserved == std::vector<std::uint64_t>{5, 3, 9});
    CHECK(curve.allocated == std::vector<std::uint64_t>{1, 2, 3});
}
