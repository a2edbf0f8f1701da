// The streaming summary agrees with the full analysis.
#include "../model/events.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/report/text/long_trace.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/reader.h"
#include "tests/support/measured.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::measure_device;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

// Two devices with segments whose slots are allocated and freed at random. Some frees wait for
// streams. Before that, a program without a pool makes `without_pool` allocations on the first
// device.
TraceWriter random_trace(unsigned seed, int without_pool) {
    std::mt19937 random(seed);
    TraceWriter trace;
    for (int i = 0; i < without_pool; ++i) {
        trace.device_alloc(0x6000000000, kMiB * (1 + random() % 8), false);
        trace.device_free(0x6000000000, false);
    }
    const auto code = trace.code("forward", "/home/user/net.py", 40);
    const std::uint32_t places[] = {
        0, trace.python_node(0, code, 42), trace.python_node(0, code, 43)};

    struct Slot {
        std::uint64_t address;
        std::uint16_t device;
        bool live = false;
        std::uint64_t waits_for = 0;
    };

    std::vector<Slot> slots;
    std::uint64_t next_wait = 1;
    for (int step = 0; step < 600; ++step) {
        trace.set_python_stack(places[random() % 3]);
        if (slots.empty() || random() % 25 == 0) {
            const auto device = static_cast<std::uint16_t>(random() % 2);
            const std::uint64_t base = 0x7000000000 + slots.size() * 4 * kMiB;
            trace.set_device(device);
            if (random() % 3 == 0) {
                trace.simple(EventKind::kAllocRefused, 0, 40 * kMiB, 2, true);
            }
            trace.device_alloc(base, 20 * kMiB, true);
            for (std::uint64_t i = 0; i < 5; ++i) {
                slots.push_back({base + i * 4 * kMiB, device});
            }
            continue;
        }
        Slot& slot = slots[random() % slots.size()];
        trace.set_device(slot.device);
        if (slot.waits_for != 0) {
            trace.simple(EventKind::kEventComplete, 0, 0, slot.waits_for);
            slot.waits_for = 0;
        } else if (!slot.live) {
            trace.block_alloc(slot.address, 3 * kMiB + random() % 1000, 4 * kMiB);
            slot.live = true;
        } else {
            const bool waits = random() % 4 == 0;
            trace.block_free(slot.address, 4 * kMiB, waits);
            slot.live = false;
            if (waits) {
                slot.waits_for = next_wait++;
                trace.simple(EventKind::kPendingEvent, slot.address, 0, slot.waits_for);
            }
        }
        if (random() % 100 == 0) {
            trace.flush();
        }
    }
    return trace;
}

void check_equal(const DeviceMetrics& a, const DeviceMetrics& b) {
    CHECK(a.summary.peak_requested == b.summary.peak_requested);
    CHECK(a.summary.peak_allocated == b.summary.peak_allocated);
    CHECK(a.summary.peak_active == b.summary.peak_active);
    CHECK(a.summary.peak_reserved == b.summary.peak_reserved);
    CHECK(a.summary.waste_at_peak.requested == b.summary.waste_at_peak.requested);
    CHECK(a.summary.waste_at_peak.rounding == b.summary.waste_at_peak.rounding);
    CHECK(a.summary.waste_at_peak.slack == b.summary.waste_at_peak.slack);
    CHECK(a.summary.waste_at_peak.pending == b.summary.waste_at_peak.pending);
    CHECK(a.summary.waste_at_peak.releasable == b.summary.waste_at_peak.releasable);
    CHECK(a.summary.waste_at_peak.inactive_split == b.summary.waste_at_peak.inactive_split);
    CHECK(a.summary.segments_allocated == b.summary.segments_allocated);
    CHECK(a.summary.segments_freed == b.summary.segments_freed);
    CHECK(a.summary.retries == b.summary.retries);
    CHECK(a.summary.ooms == b.summary.ooms);
    CHECK(a.violations == b.violations);
    CHECK(a.peak_event == b.peak_event);
}

}  // namespace

TEST_CASE("a summary has the figures of the full analysis and accounts for all memory") {
    const TemporaryFolder folder;
    for (unsigned seed = 0; seed < 40; ++seed) {
        INFO("seed " << seed);
        // In two cases the second device and the pool appear later than devices are searched for.
        random_trace(seed, seed % 20 == 1 ? 33000 : 0).save(folder.file("t.ftrace"));
        const auto timeline = read_trace(folder.file("t.ftrace"));
        const auto summary = summarize_trace(folder.file("t.ftrace"));
        REQUIRE(timeline.ok());
        REQUIRE(summary.ok());
        CHECK(summary->events == timeline->events.size());
        CHECK(summary->events_left_out == 0);
        REQUIRE(summary->devices.size() == 2);
        for (const DeviceSummary& device : summary->devices) {
            const DeviceMetrics whole = measure_device(*timeline, device.device);
            check_equal(device.metrics, whole);
            CHECK(device.peak_time_ns == timeline->events[whole.peak_event].time_ns);
            std::uint64_t held = 0;
            for (const HeldBy& holder : device.holders) {
                held += holder.bytes;
            }
            const WasteSplit& waste = device.metrics.summary.waste_at_peak;
            CHECK(held == waste.requested + waste.rounding + waste.slack + waste.pending);
        }
        // The job's figures for a process are the same with and without keeping its events.
        const auto figures = summarize_trace(folder.file("t.ftrace"), false);
        REQUIRE(figures.ok());
        CHECK(figures->last_event_ns == timeline->events.back().time_ns);
        const ProcessSummary kept = summarize_process(summarize_timeline(*timeline), "x.7.ftrace");
        const ProcessSummary streamed = summarize_process(*figures, "x.7.ftrace");
        REQUIRE(streamed.devices.size() == kept.devices.size());
        CHECK(streamed.last_event_ns == kept.last_event_ns);
        for (std::size_t i = 0; i < kept.devices.size(); ++i) {
            CHECK(figures->devices[i].holders.empty());
            CHECK(streamed.devices[i].device == kept.devices[i].device);
            CHECK(streamed.devices[i].run.peak_reserved == kept.devices[i].run.peak_reserved);
            CHECK(streamed.devices[i].run.peak_allocated == kept.devices[i].run.peak_allocated);
            CHECK(streamed.devices[i].capacity_bytes == kept.devices[i].capacity_bytes);
            CHECK(streamed.devices[i].run.ooms == kept.devices[i].run.ooms);
            CHECK(streamed.devices[i].run.retries == kept.devices[i].run.retries);
            CHECK(streamed.devices[i].first_oom_ns == kept.devices[i].first_oom_ns);
        }
    }
}

TEST_CASE("without a pool the memory at the highest of thousands of peaks is listed") {
    TraceWriter trace;
    const auto code = trace.code("step", "/home/user/net.py", 7);
    const std::uint32_t lines[] = {trace.python_node(0, code, 8), trace.python_node(0, code, 9)};
    constexpr std::uint64_t kLive = 4000;
    for (std::uint64_t i = 0; i < kLive; ++i) {
        trace.set_python_stack(lines[i % 2]);
        trace.device_alloc(0x7000000000 + i * 4 * kMiB, 2 * kMiB, false);
        // The end of a peak: the next allocation makes a higher one.
        trace.device_alloc(0x6000000000, kMiB, false);
        trace.device_free(0x6000000000, false);
    }
    const TemporaryFolder folder;
    trace.save(folder.file("t.ftrace"));
    const auto summary = summarize_trace(folder.file("t.ftrace"));
    REQUIRE(summary.ok());
    CHECK(summary->events == 3 * kLive);
    REQUIRE(summary->devices.size() == 1);
    const DeviceSummary& device = summary->devices[0];
    CHECK(device.metrics.summary.peak_reserved == (2 * kLive + 1) * kMiB);
    REQUIRE(device.holders.size() == 2);
    CHECK(device.holders[0].bytes == (kLive + 1) * kMiB);
    CHECK(device.holders[1].bytes == kLive * kMiB);
}

TEST_CASE("a summary leaves out late events and reports it") {
    TraceWriter trace;
    trace.device_alloc(0x7000000000, 20 * kMiB, true);
    EventRecord late = {};
    late.sequence = 1;
    late.kind = EventKind::kMark;
    trace.event(late);
    const TemporaryFolder folder;
    trace.save(folder.file("t.ftrace"));
    const auto summary = summarize_trace(folder.file("t.ftrace"));
    REQUIRE(summary.ok());
    CHECK(summary->events == 1);
    CHECK(summary->events_left_out == 1);
}

TEST_CASE("requests that pools of the program could not serve are counted once in two passes") {
    fragtrace::testing::Events events;
    events.add(EventKind::kProgramRequestFailed, 0, kGiB);
    events.segment(0x1000000, 20 * kMiB);
    const bool second_pass = GENERATE(false, true);
    for (int i = 0; second_pass && i < 70'000; ++i) {
        events.add(EventKind::kProgramStreamEnd);
    }
    events.add(EventKind::kDeviceAlloc, 0x8000000, 20 * kMiB).device(3);
    events.add(EventKind::kProgramRequestFailed, 0, kGiB);
    const TraceSummary summary = summarize_timeline(events.timeline);
    CHECK(summary.devices.size() == 2);
    CHECK(summary.pool_failures == 2);
    CHECK(summarize_process(summary, "x.7.ftrace").pool_failures == 2);
    const std::string text =
        long_trace_text(summary, "x.7.ftrace", Terminal(1, ColorChoice::kNever));
    CHECK(
        text.find("\nNo out-of-memory of a device, 0 retries. Pools of the program's own could not "
                  "serve 2 requests.\n") != std::string::npos);
}
