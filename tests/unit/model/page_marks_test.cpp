// Marks above and below the page's chart: bursts of driver requests, steps and phases.
#include "analyzer/analysis/metrics/driver_bursts.h"
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
    CHECK(page.phases_left_out == 2);
    REQUIRE(page.phases.size() == 8);
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
