// Planned placement, compared with all orders of small problems and checked against rules that hold
// for every plan.
#include "analyzer/plan/planner.h"

#include "analyzer/plan/greedy.h"
#include "analyzer/plan/occupancy.h"
#include "analyzer/plan/online.h"
#include "analyzer/plan/peak_first.h"
#include "analyzer/plan/search_placer.h"
#include "tests/unit/plan/plan_checks.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace fragtrace::analyzer {
namespace {

std::vector<Lifetime> random_problem(std::mt19937* random,
                                     std::size_t count,
                                     std::uint32_t times,
                                     std::uint32_t sizes) {
    std::vector<Lifetime> lifetimes(count);
    for (Lifetime& buffer : lifetimes) {
        buffer.begin = (*random)() % times;
        buffer.end = buffer.begin + 1 + (*random)() % (times / 2);
        buffer.size_bytes = 1 + (*random)() % sizes;
    }
    return lifetimes;
}

// The lowest height over all orders in which each buffer is placed as low as possible.
std::uint64_t optimum(const std::vector<Lifetime>& lifetimes) {
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), 0u);
    std::uint64_t best = ~std::uint64_t{0};
    do {
        std::vector<std::uint64_t> offsets(lifetimes.size());
        std::uint64_t height = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Lifetime& buffer = lifetimes[order[i]];
            std::uint64_t offset = 0;
            for (bool moved = true; moved;) {
                moved = false;
                for (std::size_t j = 0; j < i; ++j) {
                    const Lifetime& other = lifetimes[order[j]];
                    const std::uint64_t top = offsets[order[j]] + other.size_bytes;
                    if (live_together(buffer, other) && offset < top &&
                        offsets[order[j]] < offset + buffer.size_bytes) {
                        offset = top;
                        moved = true;
                    }
                }
            }
            offsets[order[i]] = offset;
            height = std::max(height, offset + buffer.size_bytes);
        }
        best = std::min(best, height);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

TEST_CASE("small problems are solved optimally") {
    std::mt19937 random(7);
    for (int round = 0; round < 150; ++round) {
        const auto lifetimes = random_problem(&random, 3 + random() % 5, 10, 6);
        const std::uint64_t least = optimum(lifetimes);
        const Plan plan = plan_placement(lifetimes, kQuickSearch / 100);
        check_no_overlap(lifetimes, plan.offsets);
        REQUIRE(height_bytes(lifetimes, plan.offsets) == plan.height_bytes);
        REQUIRE(plan.load_bytes <= least);
        REQUIRE(plan.height_bytes == least);
    }
}

TEST_CASE("if no placement reaches the load, the optimum above it is found") {
    const std::vector<Lifetime> lifetimes = {
        {2, 5, 1}, {0, 1, 3}, {2, 5, 1}, {3, 5, 2}, {0, 3, 3}, {5, 7, 3}, {4, 6, 2}, {1, 4, 1}};
    REQUIRE(load_bytes(lifetimes) == 6);
    REQUIRE(optimum(lifetimes) == 7);
    const Plan plan = plan_placement(lifetimes, kQuickSearch / 100);
    CHECK(plan.height_bytes == 7);
    check_no_overlap(lifetimes, plan.offsets);
    Overlaps overlaps;
    REQUIRE(overlaps.find(lifetimes, 1000));
    SearchPlacer placer(lifetimes, overlaps);
    std::vector<std::uint64_t> offsets;
    const auto order = order_by(lifetimes, BufferOrder::kSize);
    CHECK(placer.place(6, order, 100000, &offsets) == SearchOutcome::kImpossible);
}

TEST_CASE("tight placement finds the optimum and proves that nothing lower exists") {
    std::mt19937 random(8);
    for (int round = 0; round < 150; ++round) {
        const auto lifetimes = random_problem(&random, 3 + random() % 5, 10, 6);
        const std::uint64_t least = optimum(lifetimes);
        Overlaps overlaps;
        REQUIRE(overlaps.find(lifetimes, 1000));
        SearchPlacer placer(lifetimes, overlaps);
        std::vector<std::uint64_t> offsets;
        const auto order = order_by(lifetimes, BufferOrder::kSize);
        REQUIRE(placer.place(least, order, 100000, &offsets) == SearchOutcome::kFound);
        check_no_overlap(lifetimes, offsets);
        REQUIRE(height_bytes(lifetimes, offsets) == least);
        REQUIRE(placer.place(least - 1, order, 100000, &offsets) == SearchOutcome::kImpossible);
        REQUIRE(placer.place(least, order, 0, &offsets) == SearchOutcome::kGaveUp);
    }
}

TEST_CASE("every placement method keeps buffers apart and never goes below the load") {
    std::mt19937 random(9);
    for (int round = 0; round < 20; ++round) {
        const auto lifetimes = random_problem(&random, 200, 100, 1000);
        const std::uint64_t load = load_bytes(lifetimes);
        std::vector<std::uint64_t> offsets;
        std::vector<std::uint64_t> heights;
        const auto check = [&](std::uint64_t height) {
            check_no_overlap(lifetimes, offsets);
            REQUIRE(height == height_bytes(lifetimes, offsets));
            REQUIRE(height >= load);
            heights.push_back(height);
        };
        const auto turns = turns_of(lifetimes);
        check(place_online(lifetimes, turns, {}, &offsets));
        check(place_online(lifetimes, turns, {.best_fit = false}, &offsets));
        check(place_peak_first(lifetimes, turns, &offsets).value());
        Overlaps overlaps;
        REQUIRE(overlaps.find(lifetimes, 1 << 20));
        GreedyPlacer placer(lifetimes, overlaps);
        for (const BufferOrder order :
             {BufferOrder::kSize, BufferOrder::kArea, BufferOrder::kLifetime}) {
            for (const Fit fit : {Fit::kSmallestGap, Fit::kLowest}) {
                check(placer.place(order_by(lifetimes, order), fit, &offsets));
            }
        }
        const Plan plan = plan_placement(lifetimes, kQuickSearch / 100);
        offsets = plan.offsets;
        check(plan.height_bytes);
        CHECK(plan.height_bytes == *std::min_element(heights.begin(), heights.end()));
        check(place_online(lifetimes, turns, {.short_lived = 20, .ceiling_bytes = load}, &offsets));
    }
}

TEST_CASE("only the order of the times matters, not their distance") {
    constexpr std::uint64_t kNever = ~std::uint64_t{0};
    std::mt19937 random(10);
    for (int round = 0; round < 50; ++round) {
        auto lifetimes = random_problem(&random, 1 + random() % 60, 40, 3);
        lifetimes.push_back({random() % 40, kNever, random() % 2});
        lifetimes.push_back({random() % 40, kNever, 1});
        std::stable_sort(lifetimes.begin(),
                         lifetimes.end(),
                         [](const Lifetime& a, const Lifetime& b) { return a.begin < b.begin; });
        auto far_apart = lifetimes;
        for (Lifetime& buffer : far_apart) {
            buffer.begin *= 1'000'000;
            buffer.end = buffer.end == kNever ? kNever : buffer.end * 1'000'000;
        }
        const auto near_turns = turns_of(lifetimes);
        const auto far_turns = turns_of(far_apart);
        REQUIRE(near_turns.size() == far_turns.size());
        for (std::size_t i = 0; i < near_turns.size(); ++i) {
            REQUIRE(near_turns[i].buffer == far_turns[i].buffer);
            REQUIRE(near_turns[i].begins == far_turns[i].begins);
        }
    }
}

TEST_CASE("the moment with most live bytes is placed first, longest lifetimes first") {
    // Live: 3, 3 + 4, 3 + 4 + 2, 3 + 5.
    const std::vector<Lifetime> lifetimes = {{0, 9, 3}, {2, 6, 4}, {4, 5, 2}, {6, 9, 5}, {1, 2, 8}};
    const auto turns = turns_of(lifetimes);
    CHECK(order_by_peak(lifetimes, turns) == std::vector<std::uint32_t>{0, 4, 1, 2, 3});
    std::vector<std::uint64_t> offsets;
    CHECK(place_peak_first(lifetimes, turns, &offsets) == 11);
    CHECK(offsets == std::vector<std::uint64_t>{0, 3, 7, 3, 3});
}

TEST_CASE("stretches of time placed together give the same places as the order of the peaks") {
    std::mt19937 random(7);
    std::vector<Lifetime> lifetimes;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const std::uint64_t lives = i % 50 == 0 ? random() % 9000 : random() % 40;
        lifetimes.push_back({2 * i, 2 * i + 1 + lives, 512 * (1 + random() % 20)});
    }
    const std::vector<Turn> turns = turns_of(lifetimes);
    const MomentTable table = moments_of(lifetimes, turns);
    REQUIRE(table.count > 4 * 512);  // several stretches
    Occupancy occupancy(table.count);
    std::vector<std::uint64_t> expected(lifetimes.size());
    for (const std::uint32_t buffer : order_by_peak(lifetimes, turns)) {
        const std::uint64_t size_bytes = lifetimes[buffer].size_bytes;
        expected[buffer] = occupancy.lowest(table.of[buffer], size_bytes);
        occupancy.take(table.of[buffer], expected[buffer], size_bytes);
    }
    std::vector<std::uint64_t> offsets;
    REQUIRE(place_peak_first(lifetimes, turns, &offsets));
    CHECK(offsets == expected);
}

TEST_CASE("the lowest range free of overlapping lifetimes is found") {
    std::mt19937 random(12);
    for (const std::uint32_t moments : {1u, 31u, 32u, 33u, 500u}) {
        // The 400 buffers are announced in some rounds and unannounced (0) in the others.
        Occupancy occupancy(moments, moments % 2 == 0 ? 400 : 0);

        struct Taken {
            Moments moments;
            std::uint64_t begin;
            std::uint64_t end;
        };

        std::vector<Taken> taken;
        for (int i = 0; i < 400; ++i) {
            Moments life{static_cast<std::uint32_t>(random() % moments), moments};
            const std::uint32_t longest = i % 4 == 0 ? moments : 1 + moments / 8;
            life.end = std::min<std::uint32_t>(
                moments, life.begin + 1 + static_cast<std::uint32_t>(random() % longest));
            const std::uint64_t size_bytes = 1 + random() % 50;
            std::uint64_t expected = 0;
            for (bool moved = true; moved;) {
                moved = false;
                for (const Taken& other : taken) {
                    if (life.begin < other.moments.end && other.moments.begin < life.end &&
                        other.begin < expected + size_bytes && expected < other.end) {
                        expected = other.end;
                        moved = true;
                    }
                }
            }
            const std::uint64_t offset = occupancy.lowest(life, size_bytes);
            REQUIRE(offset == expected);
            occupancy.take(life, offset, size_bytes);
            taken.push_back({life, offset, offset + size_bytes});
        }
    }
}

TEST_CASE("50,000 buffers at few moments are placed or given up within the work limit") {
    std::mt19937 random(14);
    // With so few moments every buffer begins or ends inside of a single bucket of moments.
    const auto lifetimes = random_problem(&random, 50'000, 24, 1'000'000);
    const auto turns = turns_of(lifetimes);
    std::vector<std::uint64_t> offsets;
    const auto height = place_peak_first(lifetimes, turns, &offsets);
    if (height) {
        CHECK(*height >= load_bytes(lifetimes));
        CHECK(*height == height_bytes(lifetimes, offsets));
    }
    CHECK_FALSE(place_peak_first(lifetimes, turns, &offsets, 1000));
    if (height) {
        CHECK_FALSE(place_peak_first(lifetimes, turns, &offsets, {}, *height));
        CHECK(place_peak_first(lifetimes, turns, &offsets, {}, *height + 1) == height);
    }
    const Plan plan = plan_placement(lifetimes, 0);
    CHECK(plan.height_bytes == height_bytes(lifetimes, plan.offsets));
}

// Weights and optimizer states stay. Activations of a step are freed in reverse order, gradients of
// a step are freed in the next step.
std::vector<Lifetime> training(std::size_t steps) {
    std::mt19937 random(13);
    std::vector<Lifetime> lifetimes;
    std::uint64_t time = 0;
    const auto allocate = [&](std::uint64_t size_bytes) {
        lifetimes.push_back({time++, ~std::uint64_t{0}, size_bytes});
        return lifetimes.size() - 1;
    };
    const auto release = [&](std::size_t buffer) { lifetimes[buffer].end = time++; };
    constexpr std::uint64_t kLayers = 40;
    for (std::uint64_t layer = 0; layer < 3 * kLayers; ++layer) {
        allocate(1000 + 10 * (layer % kLayers));
    }
    std::vector<std::size_t> gradients;
    for (std::size_t step = 0; step < steps; ++step) {
        const std::uint64_t length = 100 + random() % 900;
        std::vector<std::size_t> activations;
        for (std::uint64_t layer = 0; layer < kLayers; ++layer) {
            activations.push_back(allocate(length * (1 + layer % 7)));
            release(allocate(length * (3 + layer % 3)));
        }
        const std::size_t loss = allocate(60 * length);
        for (const std::size_t gradient : gradients) {
            release(gradient);
        }
        gradients.clear();
        release(allocate(60 * length));
        release(loss);
        for (; !activations.empty(); activations.pop_back()) {
            release(allocate(length * 5));
            gradients.push_back(allocate(1000 + 10 * activations.size()));
            release(activations.back());
        }
    }
    return lifetimes;
}

TEST_CASE("training is planned within 5 % of its load for any number of pairs") {
    for (const std::size_t steps : {8u, 400u}) {
        const std::vector<Lifetime> lifetimes = training(steps);
        Overlaps overlaps;
        REQUIRE(overlaps.find(lifetimes, 8'000'000) == (steps == 8));
        const auto turns = turns_of(lifetimes);
        const std::uint64_t load = load_bytes(lifetimes);
        std::vector<std::uint64_t> offsets;
        const std::uint64_t in_time = place_online(lifetimes, turns, {}, &offsets);
        const std::uint64_t by_peak = place_peak_first(lifetimes, turns, &offsets).value();
        CHECK(by_peak < in_time);
        CHECK(by_peak <= load + load / 20);
        const Plan plan = plan_placement(lifetimes, kQuickSearch / 100);
        CHECK(plan.height_bytes <= by_peak);
        CHECK(height_bytes(lifetimes, plan.offsets) == plan.height_bytes);
        if (steps == 8) {
            check_no_overlap(lifetimes, plan.offsets);
        }
    }
}

TEST_CASE("the same problem gets the same plan") {
    std::mt19937 random(10);
    const auto lifetimes = random_problem(&random, 60, 50, 1000);
    const Plan one = plan_placement(lifetimes, kQuickSearch / 20);
    const Plan two = plan_placement(lifetimes, kQuickSearch / 20);
    CHECK(one.offsets == two.offsets);
    CHECK(one.method == two.method);
}

TEST_CASE("overlaps list every pair of buffers that live together, in both directions") {
    std::mt19937 random(11);
    const auto lifetimes = random_problem(&random, 50, 30, 10);
    Overlaps overlaps;
    REQUIRE(overlaps.find(lifetimes, 1 << 20));
    std::size_t pairs = 0;
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        std::vector<std::uint32_t> expected;
        for (std::uint32_t j = 0; j < lifetimes.size(); ++j) {
            if (i != j && live_together(lifetimes[i], lifetimes[j])) {
                expected.push_back(j);
            }
        }
        std::vector<std::uint32_t> found(overlaps.of(i).begin(), overlaps.of(i).end());
        std::sort(found.begin(), found.end());
        CHECK(found == expected);
        pairs += found.size();
    }
    CHECK(overlaps.find(lifetimes, pairs / 2));
    CHECK_FALSE(overlaps.find(lifetimes, pairs / 2 - 1));
}

TEST_CASE("an empty problem gives an empty plan") {
    CHECK(plan_placement({}).height_bytes == 0);
    const std::vector<Lifetime> empty = {{5, 5, 100}, {1, 2, 0}};
    CHECK(plan_placement(empty).height_bytes == 0);
    CHECK(plan_placement(empty).offsets.size() == 2);
    const std::vector<Lifetime> touching = {{0, 5, 100}, {5, 9, 100}, {3, 3, 7}};
    CHECK(plan_placement(touching).height_bytes == 100);
}

}  // namespace
}  // namespace fragtrace::analyzer
