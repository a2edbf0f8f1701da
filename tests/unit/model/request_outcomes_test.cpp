// The single rule for what counts as an out-of-memory and what as a retry. Every part of the
// program uses it.
#include "analyzer/model/request_outcomes.h"

#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/verdict/diagnosis.h"
#include "analyzer/support/units.h"
#include "events.h"
#include "tests/support/measured.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::measure_device;
using fragtrace::testing::measure_run;

namespace {

constexpr std::uint64_t kBase = 0x1000000;

struct Counts {
    std::uint64_t ooms = 0;
    std::uint64_t retries = 0;

    bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.ooms << " OOMs, " << counts.retries << " retries";
}

// The counts of device 0 in each part of the program. A phase is open all the time.
void check_all(testing::Events* events, const Counts& expected) {
    Timeline& timeline = events->timeline;
    Phase phase;
    phase.begin = 0;
    phase.end = static_cast<EventIndex>(timeline.events.size());
    timeline.phases.push_back(phase);
    const DeviceMetrics device = measure_device(timeline, 0);
    CHECK(Counts{device.summary.ooms, device.summary.retries} == expected);
    CHECK(device.troubles.size() == expected.ooms + expected.retries);
    const RunMetrics run = measure_run(timeline);
    REQUIRE(run.phases.size() == 1);
    CHECK(Counts{run.phases[0].ooms, run.phases[0].retries} == expected);
    const ProcessSummary process = summarize_process(summarize_timeline(timeline), "x.7.ftrace");
    CHECK(Counts{process.sum(&RunFigures::ooms), process.sum(&RunFigures::retries)} == expected);
}

}  // namespace

TEST_CASE("without a pool each refusal is an out-of-memory") {
    testing::Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB);
    events.add(EventKind::kAllocRefused, 0, kGiB, 2);
    events.add(EventKind::kAllocRefused, 0, kGiB, 2);
    check_all(&events, {2, 0});
}

TEST_CASE("a pool's request that is refused and then served from its cache is a retry") {
    testing::Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kAllocRefused, 0, 4 * kMiB, 2, kFlagFromAllocator);
    events.block(kBase + 512, 4 * kMiB, 4 * kMiB);
    check_all(&events, {0, 1});
}

TEST_CASE("a pool's request that stays refused is one out-of-memory and no retry") {
    testing::Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kAllocRefused, 0, kGiB, 2, kFlagFromAllocator);
    events.add(EventKind::kAllocRefused, 0, kGiB, 2, kFlagFromAllocator);
    events.add(EventKind::kBlockOutOfMemory, 0, kGiB);
    events.block(kBase + 512, 512, 512);
    check_all(&events, {1, 0});
}

TEST_CASE("a library that immediately repeats a refused request fails once") {
    testing::Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    for (const std::uint64_t size : {kGiB, kGiB, 2 * kGiB}) {
        events.add(EventKind::kAllocRefused, 0, size, 2);
    }
    CHECK(refused_libraries(events.timeline, 0, 16).size() == 2);
    check_all(&events, {2, 0});
}

TEST_CASE("an out-of-memory of a call that is no allocation counts for its device") {
    testing::Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kCallOutOfMemory);
    check_all(&events, {1, 0});
}
