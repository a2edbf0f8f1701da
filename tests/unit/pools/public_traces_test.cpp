// Problems and traces published by others. The path of their folder is compiled in. The ratios of
// best fit to the peak of live bytes are known from publications.
#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/validation/replay_check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {
namespace {

const std::string kTraces = FRAGTRACE_SHARED_TRACES;

struct Event {
    std::uint64_t time;
    bool begins;  // ends come before begins at the same time
    BlockId id;
    std::uint64_t size;

    bool operator<(const Event& other) const {
        return std::tuple(time, begins, id) < std::tuple(other.time, other.begins, other.id);
    }
};

// Peak of best fit without rounding, relative to the load.
std::string best_fit_ratio(const std::string& name) {
    std::ifstream file(kTraces + "/dsa/" + name + ".csv");
    REQUIRE(file.is_open());
    std::string line;
    std::getline(file, line);
    REQUIRE(line.starts_with("id,lower,upper,size"));
    std::vector<Event> events;
    for (BlockId id = 0; std::getline(file, line); ++id) {
        std::uint64_t numbers[3] = {};
        const char* at = line.data() + line.find(',') + 1;
        for (std::uint64_t& number : numbers) {
            at = std::from_chars(at, line.data() + line.size(), number).ptr + 1;
        }
        events.push_back({numbers[0], true, id, numbers[2]});
        events.push_back({numbers[1], false, id, numbers[2]});
    }
    std::sort(events.begin(), events.end());
    constexpr std::uint64_t kCard = std::uint64_t{1} << 40;
    auto made = make_pool(
        "best-fit", "round_to:1,grow_by:1", std::make_unique<FixedDevice>(kCard, kCard, 1));
    REQUIRE(made.ok());
    Pool& pool = **made;
    for (const Event& event : events) {
        if (event.begins) {
            REQUIRE(pool.allocate({event.id, event.size}).outcome != Outcome::kOutOfMemory);
        } else {
            REQUIRE(pool.release(event.id, {}));
        }
    }
    const PoolStatistics& statistics = pool.statistics();
    return fmt::format("{:.3f}",
                       static_cast<double>(statistics.reserved.peak) /
                           static_cast<double>(statistics.requested.peak));
}

TEST_CASE("best-fit reaches the known ratios on MiniMalloc's problems and on ResNet-50") {
    CHECK(best_fit_ratio("minimalloc_A.1048576") == "1.752");
    CHECK(best_fit_ratio("minimalloc_B.1048576") == "1.693");
    CHECK(best_fit_ratio("minimalloc_C.1048576") == "1.754");
    CHECK(best_fit_ratio("minimalloc_D.1048576") == "1.489");
    CHECK(best_fit_ratio("minimalloc_E.1048576") == "1.855");
    CHECK(best_fit_ratio("minimalloc_F.1048576") == "1.222");
    CHECK(best_fit_ratio("somas_resnet50") == "1.003");
}

TEST_CASE("every pool serves a complete real run without a violation") {
    const auto analysis = analyze(kTraces + "/pytorch/decomfl.pickle.gz", {});
    REQUIRE(analysis.ok());
    REQUIRE((*analysis)->devices.size() == 1);
    const DeviceAnalysis& device = (*analysis)->devices.front();
    constexpr std::uint64_t kCard = std::uint64_t{8} << 30;
    for (const PoolDescription& known : known_pools()) {
        if (!known.bound.empty()) {
            continue;  // a bound, which has no placements
        }
        INFO(known.name);
        const auto setup = candidate_setup(device,
                                           {.name = {},
                                            .pool = std::string(known.name),
                                            .config = {},
                                            .capacity_bytes = kCard,
                                            .total_bytes = kCard});
        REQUIRE(setup.ok());
        Pool& pool = *setup.value().pool;
        const ReplayCheck check = check_replay(device.script, pool, known.streams, kCard);
        CHECK(check.violation.empty());
        CHECK(check.result.requests_served == 7946);
        CHECK(check.result.troubles.empty());
        const HeapSnapshot heap = pool.snapshot();
        CHECK(std::count_if(heap.blocks.begin(), heap.blocks.end(), [](const HeapBlock& block) {
                  return block.state == BlockState::kLive;
              }) == 397);
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
