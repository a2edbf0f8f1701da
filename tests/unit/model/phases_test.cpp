// Phases, time in driver calls, host memory, and calls that failed.
#include "analyzer/trace/phases.h"

#include "analyzer/analysis/metrics/other_processes.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/model/phase_index.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/recording_spans.h"
#include "tests/support/measured.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

#include <numeric>
#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;
using fragtrace::testing::measure_run;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

// Events whose origin number stands for the thread.
struct Threads : Events {
    Threads() {
        for (std::uint32_t thread = 0; thread < 4; ++thread) {
            timeline.origins.push_back({.thread = 100 + thread});
        }
        timeline.facts = {
            {"text.1", "forward"}, {"text.2", "backward"}, {"text.3", "cublasCreate"}};
    }

    EventIndex range(EventKind kind,
                     std::uint32_t thread,
                     std::uint64_t name,
                     std::uint64_t id = 0,
                     RangeKind range_kind = RangeKind::kApi) {
        add(kind, id, name, static_cast<std::uint64_t>(range_kind)).origin(thread);
        return static_cast<EventIndex>(timeline.events.size() - 1);
    }

    void find() {
        std::vector<EventIndex> all(timeline.events.size());
        std::iota(all.begin(), all.end(), EventIndex{0});
        find_recording_spans(&timeline, all);
        find_phases(&timeline, all);
    }
};

}  // namespace

TEST_CASE("phases nest per thread, kind and name, and can end by id on any thread", "[phases]") {
    Threads run;
    const EventIndex outer = run.range(EventKind::kRangeBegin, 1, 1);
    run.range(EventKind::kRangeBegin, 2, 2);
    const EventIndex inner = run.range(EventKind::kRangeBegin, 1, 2, 0, RangeKind::kNvtx);
    run.range(EventKind::kRangeBegin, 1, 2, 77);
    const EventIndex outer_end = run.range(EventKind::kRangeEnd, 1, 1);  // out of order
    const EventIndex inner_end = run.range(EventKind::kRangeEnd, 1, 0, 0, RangeKind::kNvtx);
    const EventIndex id_end = run.range(EventKind::kRangeEnd, 2, 0, 77);
    run.range(EventKind::kRangeEnd, 3, 0);  // no phase is open on this thread
    run.find();
    const std::vector<Phase>& phases = run.timeline.phases;
    REQUIRE(phases.size() == 4);
    CHECK(phases[0].begin == outer);
    CHECK(phases[0].end == outer_end);
    CHECK(phases[0].depth == 0);
    CHECK(phases[1].end == run.timeline.events.size());  // never ended
    CHECK(phases[2].begin == inner);
    CHECK(phases[2].end == inner_end);
    CHECK(phases[2].depth == 1);
    CHECK(phases[3].end == id_end);
}

TEST_CASE("an event belongs to its thread's innermost phase, else to the phase begun last",
          "[phases]") {
    Threads run;
    run.range(EventKind::kRangeBegin, 1, 1);
    run.range(EventKind::kRangeBegin, 1, 2);
    run.add(EventKind::kBlockAlloc).origin(1);
    run.range(EventKind::kRangeEnd, 1, 2);
    run.add(EventKind::kBlockAlloc).origin(1);
    run.add(EventKind::kBlockAlloc).origin(3);
    run.range(EventKind::kRangeEnd, 1, 1);
    run.add(EventKind::kBlockAlloc).origin(1);
    run.find();
    const PhaseIndex index(run.timeline);
    CHECK(index.name_of(2) == "backward");
    CHECK(index.name_of(4) == "forward");
    CHECK(index.name_of(5) == "forward");
    CHECK(index.name_of(7).empty());
}

TEST_CASE("a row of phases has its peaks, its remaining memory and its time", "[phases]") {
    Threads run;
    run.segment(kBase, 20 * kMiB);
    run.block(kBase, 8 * kMiB, 8 * kMiB);
    run.range(EventKind::kRangeBegin, 1, 1);
    run.block(kBase + 8 * kMiB, 4 * kMiB, 4 * kMiB);
    run.free(kBase + 8 * kMiB);
    run.add(EventKind::kAllocRefused, 0, 30 * kMiB, 2, kFlagFromAllocator);
    run.timeline.durations.emplace_back(5, 100);
    run.segment(kBase + 64 * kMiB, 30 * kMiB);
    run.timeline.durations.emplace_back(6, 50);
    run.block(kBase + 64 * kMiB, 30 * kMiB, 30 * kMiB);
    run.range(EventKind::kRangeEnd, 1, 1);
    run.free(kBase + 64 * kMiB);
    run.range(EventKind::kRangeBegin, 1, 1);
    run.free(kBase);
    run.add(EventKind::kCallOutOfMemory, 0, 3, 2);
    run.find();
    const RunMetrics metrics = measure_run(run.timeline);
    REQUIRE(metrics.phases.size() == 1);
    const PhaseTotals& phase = metrics.phases[0];
    CHECK(phase.name == "forward");
    CHECK(phase.count == 2);
    CHECK(phase.figures.peak_allocated == 38 * kMiB);
    CHECK(phase.figures.peak_reserved == 50 * kMiB);
    CHECK(phase.figures.left_bytes ==
          static_cast<std::int64_t>(22 * kMiB));  // 30 MiB more, then 8 MiB less
    CHECK(phase.driver_allocs == 1);
    CHECK(phase.driver_ns == 150);
    CHECK(phase.retries == 1);
    CHECK(phase.ooms == 1);
    REQUIRE(metrics.retries.size() == 1);
    CHECK(metrics.retries[0].driver_ns == 150);
    REQUIRE(metrics.call_ooms.size() == 1);
    CHECK(metrics.call_ooms[0].function == "cublasCreate");
    CHECK(metrics.call_ooms[0].reserved_bytes == 50 * kMiB);
    REQUIRE(metrics.calls.size() >= 2);
    CHECK(metrics.calls[0].kind == EventKind::kAllocRefused);
    CHECK(metrics.calls[0].total_ns == 100);
}

TEST_CASE("a failed call without a known device has no state", "[phases]") {
    Threads run;
    run.segment(kBase, 64 * kMiB);
    run.add(EventKind::kCallOutOfMemory).device(kUnknownDevice);
    run.add(EventKind::kCallOutOfMemory);
    run.find();
    const RunMetrics metrics = measure_run(run.timeline);
    REQUIRE(metrics.call_ooms.size() == 2);
    CHECK_FALSE(metrics.call_ooms[0].device_known);
    CHECK(metrics.call_ooms[1].device_known);
    CHECK(metrics.call_ooms[1].reserved_bytes == 64 * kMiB);
    CHECK_FALSE(metrics.call_ooms[1].device_free_bytes);  // there is no sample of the driver's
}

TEST_CASE("pinned and managed memory have their own sums and holders", "[phases]") {
    Threads run;
    run.add(EventKind::kHostAlloc, 0x1000, 5 * kMiB).origin(1);
    run.add(EventKind::kHostRegister, 0x900000, 2 * kMiB).origin(2);
    run.add(EventKind::kManagedAlloc, kBase, 64 * kMiB);
    run.add(EventKind::kHostFree, 0x1000);
    run.add(EventKind::kHostAlloc, 0x1000, 1 * kMiB).origin(1);
    run.add(EventKind::kHostFree, 0xdead);
    const RunMetrics metrics = measure_run(run.timeline);
    CHECK(metrics.pinned.peak_bytes == 7 * kMiB);
    CHECK(metrics.pinned.allocations == 3);
    REQUIRE(metrics.pinned.holders.size() == 2);
    CHECK(metrics.pinned.holders[0] == std::pair<OriginId, std::uint64_t>{1, 5 * kMiB});
    CHECK(metrics.managed.peak_bytes == 64 * kMiB);
}

TEST_CASE("gaps and checkpoints are found, even without an end", "[phases]") {
    Threads run;
    run.add(EventKind::kRecordingStarted);
    run.range(EventKind::kRangeBegin, 1, 1);
    run.add(EventKind::kRecordingStopped);
    run.add(EventKind::kRecordingStopped);
    run.add(EventKind::kRecordingStarted);
    run.add(EventKind::kCheckpointBegin);
    run.add(EventKind::kCheckpointBegin);
    run.find();
    REQUIRE(run.timeline.gaps.size() == 2);
    CHECK(run.timeline.gaps[0].end == 0);
    CHECK(run.timeline.gaps[1].begin == 2);
    CHECK(run.timeline.gaps[1].end == 4);
    REQUIRE(run.timeline.phases.size() == 1);
    CHECK(run.timeline.phases[0].end == 2);
    REQUIRE(run.timeline.checkpoints.size() == 1);
    CHECK(run.timeline.checkpoints[0].end == run.timeline.events.size());
    CHECK(run.timeline.damage.notes.size() == 1);
}

TEST_CASE("memory of other processes is read as written, invalid text is ignored", "[phases]") {
    Timeline timeline;
    timeline.facts["device.0.processes.1"] =
        "event 12 used 1000 free 24 self 7, 7 100, 8 500, 9 unknown, 10 600, and 3 more";
    timeline.facts["device.0.processes.2"] = "event x";
    timeline.facts["device.0.context_bytes"] = "4096";
    const auto found = other_processes(timeline, 0);
    REQUIRE(found.size() == 1);
    CHECK(found[0].sequence == 12);
    CHECK(found[0].processes == 3);
    CHECK(found[0].other_bytes == 1100);
    CHECK(found[0].largest_pid == 10);
    CHECK(other_processes(timeline, 1).empty());
    CHECK(context_memory(timeline, 0).bytes == 4096);
}

TEST_CASE("a range is a library's if its domain is, not if its name begins like one") {
    CHECK(library_of_range("NCCL: ncclAllReduce") == "NCCL");
    CHECK(library_of_range("NCCL warm-up: step 1").empty());
    CHECK(library_of_range("NCCL").empty());
    CHECK(library_of_range("thrust::sort") == "CCCL");
}
