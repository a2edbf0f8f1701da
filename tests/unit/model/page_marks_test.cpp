// Marks above and below the page's chart: bursts of driver requests, steps and phases.
#include "analyzer/analysis/metrics/driver_bursts.h"
#include "analyzer/report/page/page_limits.h"
#include "analyzer/report/page/page_phases.h"
#include "analyzer/support/units.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;

namespace {

// `count` driver requests in a row, then `pause` other events.
void requests(Events* run, int count, int pause) {
    for (int i = 0; i < count; ++i) {
        run->segment(0x1000, kMiB);
    }
    for (int i = 0; i < pause; ++i) {
        run->block(0x1000, 1, 512);
    }
}

void begin_phase(
    Events* run, EventIndex begin, EventIndex end, std::uint32_t thread, std::uint32_t depth) {
    run->timeline.phases.push_back({.name = depth + 1,
                                    .kind = RangeKind::kNvtx,
                                    .thread = thread,
                                    .depth = depth,
                                    .begin = begin,
                                    .end = end});
}

}  // namespace

TEST_CASE("eight driver requests without a pause are a burst, seven are not", "[bursts]") {
    Events run;
    requests(&run, 8, 500);
    requests(&run, 7, 500);
    requests(&run, 20, 3000);
    const auto bursts = find_driver_bursts(run.timeline, 0);
    REQUIRE(bursts.size() == 2);
    CHECK(bursts[0].first == 0);
    CHECK(bursts[0].last == 7);
    CHECK(bursts[0].requests == 8);
    CHECK(bursts[0].bytes == 8 * kMiB);
    CHECK(bursts[1].requests == 20);
    CHECK(find_driver_bursts(run.timeline, 1).empty());
    CHECK(find_driver_bursts(Timeline{}, 0).empty());
}

TEST_CASE("with too many bursts the largest are kept, sorted by time", "[bursts]") {
    Events run;
    for (int i = 0; i < 6; ++i) {
        requests(&run, 8 + (i % 3), 200);
    }
    const auto bursts = find_driver_bursts(run.timeline, 0, 2);
    REQUIRE(bursts.size() == 2);
    CHECK(bursts[0].requests == 10);
    CHECK(bursts[1].requests == 10);
    CHECK(bursts[0].first < bursts[1].first);
}

TEST_CASE("too many phases: short neighbours of a lane become one range that has their number") {
    std::vector<PagePhase> phases = {{.name = "run", .start_ns = 0, .end_ns = 1'000'000}};
    for (std::uint64_t i = 0; i < 1000; ++i) {
        phases.push_back({.name = i % 4 == 0   ? "load"
                                  : i % 4 == 1 ? "step"
                                               : "save",
                          .start_ns = i * 1000,
                          .end_ns = i * 1000 + (i == 500 ? 400'000 : 900),
                          .lane = 1});
        i = i == 500 ? 900 : i;
    }
    phases.push_back({.name = "open", .start_ns = 999'999, .lane = 1});
    const std::size_t all = phases.size();
    limit_phases(&phases, all);
    CHECK(phases.size() == all);
    limit_phases(&phases, 100);
    CHECK(phases.size() <= 100);
    CHECK(phases.size() > 20);
    std::size_t count = 0;
    bool long_one = false;
    for (const PagePhase& phase : phases) {
        count += phase.count;
        long_one = long_one || (phase.count == 1 && phase.end_ns == 900'000);
        CHECK((phase.lane == 1 || (phase.name == "run" && phase.count == 1)));
    }
    CHECK(count == all);
    CHECK(long_one);
    CHECK(phases[1].name == "load, step, save");
    CHECK(phases.back().end_ns == kNeverNs);

    // All are open until the end: they still become few.
    phases.assign(500, {.name = "open", .start_ns = 5});
    limit_phases(&phases, 10);
    REQUIRE(phases.size() == 1);
    CHECK(phases[0].count == 500);
    CHECK(phases[0].name == "open");
}

TEST_CASE("steps come first, then a lane per thread and depth up to a limit") {
    Events run;
    requests(&run, 0, 100);
    run.timeline.facts = {{"text.1", "outer"}, {"text.2", "inner"}};
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
        begin_phase(&run, 10 + thread, 60, thread, 0);
        begin_phase(&run, 20 + thread, 100, thread, 1);
    }
    Iterations iterations;
    iterations.source = Iterations::Source::kRecurrence;
    iterations.begins = {5, 50};
    PageDevice page;
    add_phases(run.timeline, iterations, &page);
    REQUIRE(page.phase_lanes.size() == 7);
    CHECK(page.phase_lanes.front() == "steps");
    // Depth 1 of thread 2 and both depths of thread 3 share the last lane.
    CHECK(page.phase_lanes.back() == "others");
    REQUIRE(page.phases.size() == 8);
    const auto others = std::find_if(
        page.phases.begin(), page.phases.end(), [](const auto& one) { return one.lane == 6; });
    REQUIRE(others != page.phases.end());
    CHECK(others->count == 3);
    CHECK(others->name == "outer, inner");
    CHECK(page.phases[0].name == "step 1");
    CHECK(page.phases[0].end_ns == 50'000);
    CHECK(page.phases[1].name == "outer");
    CHECK(page.phases[1].lane == 1);
    CHECK(page.phases.back().name == "step 2");
    CHECK(page.phases.back().end_ns == kNeverNs);
    for (std::size_t i = 1; i < page.phases.size(); ++i) {
        CHECK(page.phases[i - 1].start_ns <= page.phases[i].start_ns);
    }
}
