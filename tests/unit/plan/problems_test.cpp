// Public problems. The results of simple heuristics on them are known, and planning must be at
// least as good.
#include "analyzer/plan/csv.h"
#include "analyzer/plan/greedy.h"
#include "analyzer/plan/online.h"
#include "analyzer/plan/planner.h"
#include "tests/unit/plan/plan_checks.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// Load and height of greedy by size, then ratios to the load: greedy by bytes x lifetime, greedy by
// lifetime, best fit and first fit in order of time.
struct Known {
    std::uint64_t load_bytes;
    std::uint64_t by_size_bytes;
    double by_area;
    double by_lifetime;
    double online_best;
    double online_first;
};

const std::map<std::string, Known> kKnown = {
    {"minimalloc_A.1048576", {1048576, 1374208, 2.051, 1.456, 1.752, 1.534}},
    {"minimalloc_B.1048576", {1048576, 1412096, 1.872, 1.503, 1.693, 1.693}},
    {"minimalloc_C.1048576", {1039360, 1417216, 2.001, 1.473, 1.754, 1.702}},
    {"minimalloc_D.1048576", {986112, 1315840, 1.422, 1.484, 1.489, 1.569}},
    {"minimalloc_E.1048576", {1048576, 1469440, 1.714, 1.600, 1.855, 1.890}},
    {"minimalloc_F.1048576", {1048576, 1441792, 1.356, 1.408, 1.222, 1.219}},
    {"somas_resnet50", {1515472556, 1525964460, 1.007, 1.004, 1.003, 1.009}},
};

std::vector<Lifetime> read(const std::string& name) {
    std::ifstream file(std::string(FRAGTRACE_PROBLEMS "/") + name + ".csv");
    std::stringstream text;
    text << file.rdbuf();
    const auto problem = read_problem(text.str(), name);
    REQUIRE(problem.ok());
    return problem->lifetimes;
}

TEST_CASE("known heuristics reach their known heights, planning is better than all of them") {
    for (const auto& [name, known] : kKnown) {
        INFO(name);
        const std::vector<Lifetime> lifetimes = read(name);
        const std::uint64_t load = load_bytes(lifetimes);
        REQUIRE(load == known.load_bytes);
        Overlaps overlaps;
        REQUIRE(overlaps.find(lifetimes, 1 << 24));
        GreedyPlacer placer(lifetimes, overlaps);
        std::vector<std::uint64_t> offsets;
        const auto greedy = [&](BufferOrder order) {
            return placer.place(order_by(lifetimes, order), Fit::kSmallestGap, &offsets);
        };
        const auto ratio = [load](std::uint64_t height) {
            return static_cast<double>(height) / static_cast<double>(load);
        };
        CHECK(greedy(BufferOrder::kSize) == known.by_size_bytes);
        CHECK(ratio(greedy(BufferOrder::kArea)) == Approx(known.by_area).margin(0.0006));
        CHECK(ratio(greedy(BufferOrder::kLifetime)) == Approx(known.by_lifetime).margin(0.0006));
        const auto turns = turns_of(lifetimes);
        CHECK(ratio(place_online(lifetimes, turns, {}, &offsets)) ==
              Approx(known.online_best).margin(0.0006));
        CHECK(ratio(place_online(lifetimes, turns, {.best_fit = false}, &offsets)) ==
              Approx(known.online_first).margin(0.0006));

        const Plan plan = plan_placement(lifetimes, kQuickSearch);
        check_no_overlap(lifetimes, plan.offsets);
        CHECK(height_bytes(lifetimes, plan.offsets) == plan.height_bytes);
        // Heuristics lose 17 to 41 % on the first six problems and almost nothing on training
        // graphs.
        CHECK(ratio(plan.height_bytes) <= (name == "somas_resnet50" ? 1.004 : 1.15));
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
