// Metrics of recorded runs.

#include "analyzer/support/units.h"
#include "tests/support/measured.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;
using fragtrace::testing::measure_device;
using fragtrace::testing::measure_run;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

void check_identity(const WasteSplit& split) {
    REQUIRE(split.reserved == split.requested + split.rounding + split.slack + split.pending +
                                  split.releasable + split.inactive_split);
    REQUIRE(split.inactive_split <= split.reserved);
}

// A random but legal run: native segments and one expandable reservation, with blocks that are
// allocated, freed and left pending.
Events random_life(unsigned seed) {
    Events events;
    std::mt19937 random(seed);

    struct Live {
        std::uint64_t size_bytes;
    };

    std::map<std::uint64_t, std::uint64_t> live;      // address, block bytes
    std::map<std::uint64_t, std::uint64_t> segments;  // address, bytes; pages too
    std::uint64_t next_handle = 1;
    std::map<std::uint64_t, std::uint64_t> handles;  // page address -> handle
    events.add(EventKind::kAddressReserve, kBase, 1024 * kMiB, 0, kFlagFromAllocator).device(31);
    for (int step = 0; step < 400; ++step) {
        const auto choice = random() % 10;
        if (choice == 0) {
            const std::uint64_t page = kBase + random() % 16 * 20 * kMiB;
            if (segments.emplace(page, 20 * kMiB).second) {
                handles[page] = next_handle;
                events.page(page, 20 * kMiB, next_handle++);
            }
        } else if (choice == 1) {
            const std::uint64_t address = kBase + (2048 + random() % 16 * 64) * kMiB;
            if (segments.emplace(address, 2 * kMiB).second) {
                events.segment(address, 2 * kMiB);
            }
        } else if (choice == 2 && !segments.empty()) {
            auto segment = std::next(segments.begin(),
                                     static_cast<std::ptrdiff_t>(random() % segments.size()));
            const auto block = live.lower_bound(segment->first);
            if (block == live.end() || block->first >= segment->first + segment->second) {
                const auto handle = handles.find(segment->first);
                if (handle != handles.end()) {
                    events.unmap(segment->first, segment->second, handle->second);
                    handles.erase(handle);
                } else {
                    events.segment_free(segment->first);
                }
                segments.erase(segment);
            }
        } else if (choice < 7 && !segments.empty()) {
            auto segment = std::next(segments.begin(),
                                     static_cast<std::ptrdiff_t>(random() % segments.size()));
            const std::uint64_t block_bytes = (1 + random() % 4000) * 512 / 2 / 512 * 512 + 512;
            const std::uint64_t address = segment->first + random() % 1000 * 512;
            const auto after = live.lower_bound(address);
            const bool fits = address + block_bytes <= segment->first + segment->second &&
                              (after == live.end() || after->first >= address + block_bytes) &&
                              (after == live.begin() ||
                               std::prev(after)->first + std::prev(after)->second <= address);
            if (fits) {
                events.block(address, 1 + random() % block_bytes, block_bytes);
                live[address] = block_bytes;
            }
        } else if (!live.empty()) {
            auto block =
                std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
            const bool pending = random() % 4 == 0;
            events.free(block->first, pending);
            if (pending) {
                events.add(EventKind::kPendingEvent, block->first, 0, next_handle);
                if (random() % 2 == 0) {
                    events.add(EventKind::kEventComplete, 0, 0, next_handle);
                }
                ++next_handle;
            }
            live.erase(block);
        }
    }
    return events;
}

}  // namespace

TEST_CASE("the parts of reserved memory add up after every event of random runs", "[metrics]") {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const Events events = random_life(seed);
        RecordedState state(events.timeline);
        std::uint64_t peak = 0;
        while (state.position() < events.timeline.events.size()) {
            state.advance();
            check_identity(waste_split(state, 0));
            peak = std::max(peak, state.totals(0).reserved);
            const HeapSnapshot heap = state.snapshot(0);
            std::uint64_t live = 0;
            std::uint64_t all = 0;
            for (const HeapBlock& block : heap.blocks) {
                all += block.size_bytes;
                live += block.state == BlockState::kLive ? block.size_bytes : 0;
            }
            REQUIRE(all == state.totals(0).reserved);
            REQUIRE(live == state.totals(0).allocated);
        }
        CAPTURE(seed);
        REQUIRE(state.violations().count == 0);
        const DeviceMetrics metrics = measure_device(events.timeline, 0);
        check_identity(metrics.summary.waste_at_peak);
        CHECK(metrics.summary.peak_reserved == peak);
    }
}

TEST_CASE("each peak has its own moment, the split is at the reserved peak", "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 10 * kMiB - 100, 10 * kMiB);
    events.block(kBase + 10 * kMiB, 10 * kMiB, 10 * kMiB);
    events.free(kBase);
    events.segment(kBase + 64 * kMiB, 20 * kMiB);
    events.block(kBase + 64 * kMiB, 5 * kMiB, 5 * kMiB);
    events.free(kBase + 64 * kMiB);
    const DeviceMetrics metrics = measure_device(events.timeline, 0);
    const RunFigures& summary = metrics.summary;
    CHECK(summary.peak_allocated == 20 * kMiB);
    CHECK(summary.peak_requested == 20 * kMiB - 100);
    CHECK(summary.peak_reserved == 40 * kMiB);
    CHECK(metrics.peak_event == 4);
    CHECK(summary.waste_at_peak.requested == 15 * kMiB);
    CHECK(summary.waste_at_peak.releasable == 0);
    CHECK(summary.waste_at_peak.inactive_split == 25 * kMiB);
    CHECK(summary.segments_allocated == 2);
    CHECK(summary.segments_freed == 0);
}

TEST_CASE("retries and OOMs are counted from the recorded events", "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.free(kBase);
    // The driver refused, the cache was released, then the request was served.
    events.add(EventKind::kAllocRefused, 0, 40 * kMiB, 2, kFlagFromAllocator);
    events.segment_free(kBase);
    events.segment(kBase, 40 * kMiB);
    events.block(kBase, 40 * kMiB, 40 * kMiB);
    // The driver refused twice.
    events.add(EventKind::kAllocRefused, 0, 80 * kMiB, 2, kFlagFromAllocator);
    events.add(EventKind::kAllocRefused, 0, 80 * kMiB, 2, kFlagFromAllocator);
    events.add(EventKind::kBlockOutOfMemory, 0, 80 * kMiB, 1 * kMiB);
    // A later block from the cache is no retry. A library's refused request is an out-of-memory.
    events.free(kBase);
    events.block(kBase, 512, 512);
    events.add(EventKind::kAllocRefused, 0, 80 * kMiB, 2);
    events.segment(kBase + 64 * kMiB, 2 * kMiB);
    events.block(kBase + 64 * kMiB, 512, 512);
    const DeviceMetrics metrics = measure_device(events.timeline, 0);
    CHECK(metrics.summary.retries == 1);
    CHECK(metrics.summary.ooms == 2);
    CHECK(metrics.summary.segments_allocated == 3);
    CHECK(metrics.summary.segments_freed == 1);
}

TEST_CASE("pages mapped for one request are one segment", "[metrics]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, 1024 * kMiB, 0, kFlagFromAllocator).device(31);
    events.page(kBase, 20 * kMiB, 1);
    events.page(kBase + 20 * kMiB, 20 * kMiB, 2);
    events.block(kBase, 40 * kMiB, 40 * kMiB);
    events.page(kBase + 40 * kMiB, 20 * kMiB, 3);
    events.block(kBase + 40 * kMiB, 20 * kMiB, 20 * kMiB);
    const DeviceMetrics metrics = measure_device(events.timeline, 0);
    CHECK(metrics.summary.segments_allocated == 2);
    CHECK(metrics.summary.peak_reserved == 60 * kMiB);
    CHECK(metrics.violations == 0);
}

TEST_CASE("the pool's capacity is the free memory plus its own memory", "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kDeviceAlloc, kBase + 64 * kMiB, 6 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 44 * kMiB, 80 * kMiB);
    events.timeline.durations = {{0, 100}, {1, 7}, {2, 50}};
    const DeviceMetrics metrics = measure_device(events.timeline, 0);
    CHECK(metrics.total_bytes == 80 * kMiB);
    CHECK(metrics.capacity_bytes == 64 * kMiB);
    CHECK(metrics.context_and_others_bytes == 16 * kMiB);
    CHECK(metrics.summary.segments_allocated == 1);
    CHECK(metrics.summary.driver_time_ns == 150);  // the block's own time is not driver time
    events.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator).device(1);
    events.timeline.durations.emplace_back(4, 1000);
    CHECK(measure_device(events.timeline, 0).summary.driver_time_ns == 150);
    CHECK(measure_device(events.timeline, 1).summary.driver_time_ns == 1000);
}

TEST_CASE("the first out-of-memory is no retry", "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.add(EventKind::kAllocRefused, 0, 20 * kMiB, 0, kFlagFromAllocator);
    events.block(kBase, kMiB, kMiB);  // 2: a retry
    CHECK_FALSE(measure_device(events.timeline, 0).first_oom_ns.has_value());
    events.add(EventKind::kBlockOutOfMemory, 0, 40 * kMiB);  // 3
    events.add(EventKind::kBlockOutOfMemory, 0, 40 * kMiB);
    const DeviceMetrics metrics = measure_device(events.timeline, 0);
    CHECK(metrics.first_oom_ns == 3000u);
    CHECK(metrics.summary.retries == 1);
    CHECK(metrics.summary.ooms == 2);
}

TEST_CASE("a peak is the first moment with the maximum, also for host memory", "[metrics]") {
    Events events;
    events.add(EventKind::kHostAlloc, 0x1000, 512);
    events.add(EventKind::kHostFree, 0x1000);
    events.add(EventKind::kHostAlloc, 0x2000, 512);
    const RunMetrics metrics = measure_run(events.timeline);
    CHECK(metrics.pinned.peak_bytes == 512);
    CHECK(metrics.pinned.peak_event == 0);
}

TEST_CASE("pinned and managed memory over time have every change, and none within a checkpoint",
          "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);                       // 0
    events.add(EventKind::kHostAlloc, 0x1000, 512);         // 1
    events.add(EventKind::kHostRegister, 0x2000, 4096);     // 2
    events.add(EventKind::kManagedAlloc, 0x9000, kMiB);     // 3
    events.block(kBase, kMiB, kMiB);                        // 4
    events.add(EventKind::kHostAlloc, 0x3000, kUnknown64);  // 5: counts 0 bytes
    events.add(EventKind::kCheckpointBegin);                // 6
    events.add(EventKind::kHostRegister, 0x2000, 4096);     // 7
    events.add(EventKind::kManagedAlloc, 0x9000, kMiB);     // 8
    events.add(EventKind::kCheckpointEnd);                  // 9: 0x1000 is not listed
    events.add(EventKind::kDeviceFree, 0x9000);             // 10
    events.add(EventKind::kHostUnregister, 0x2000);         // 11
    const SidesOverTime sides = sides_over_time(events.timeline);
    CHECK(sides.pinned.time_ns == std::vector<std::uint64_t>{1000, 2000, 9000, 11000});
    CHECK(sides.pinned.bytes == std::vector<std::uint64_t>{512, 4608, 4096, 0});
    CHECK(sides.managed.time_ns == std::vector<std::uint64_t>{3000, 10000});
    CHECK(sides.managed.bytes == std::vector<std::uint64_t>{kMiB, 0});
    CHECK(measure_run(events.timeline).pinned.peak_bytes == 4608);
}

TEST_CASE("a retry's cost is the time of all driver calls on its own device", "[metrics]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.add(EventKind::kAllocRefused, 0, 20 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kDeviceFree, kBase, 0, 0, kFlagFromAllocator);
    events.add(EventKind::kDeviceFree, 1, 0, 0, kFlagFromAllocator).device(1);
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, kMiB, kMiB);
    events.timeline.durations = {{1, 5}, {2, 70}, {3, 1000}, {4, 20}};
    const RunMetrics metrics = measure_run(events.timeline);
    REQUIRE(metrics.retries.size() == 1);
    CHECK(metrics.retries[0].event == 5);
    CHECK(metrics.retries[0].driver_ns == 95);
    REQUIRE(!metrics.calls.empty());
    CHECK(metrics.calls[0].kind == EventKind::kDeviceFree);
    CHECK(metrics.calls[0].count == 2);
    CHECK(metrics.calls[0].total_ns == 1070);
    CHECK(metrics.calls[0].max_ns == 1000);
}

TEST_CASE("events whose stack reaches the recorder's frame limit are counted", "[metrics]") {
    Events events;
    events.timeline.facts["options.stack_depth"] = "2";
    events.timeline.nodes = {{}, {}, {}, {}};
    events.timeline.nodes[2].parent = 1;  // two frames
    events.timeline.origins = {{}, {}, {}};
    events.timeline.origins[1].native_stack = 1;
    events.timeline.origins[2].python_stack = 2;
    events.segment(kBase, 20 * kMiB);
    for (const OriginId origin : {OriginId{1}, OriginId{2}, OriginId{2}}) {
        events.block(kBase, kMiB, kMiB);
        Event event = events.timeline.events.back();
        event.origin = origin;
        events.timeline.events.set(events.timeline.events.size() - 1, event);
        events.free(kBase);
    }
    CHECK(measure_run(events.timeline).cut_stacks == 2);
}

TEST_CASE("live memory alone is a state, with a request or a free it is a history", "[metrics]") {
    const auto is_state = [](auto add_history) {
        Events events;
        events.add(EventKind::kCheckpointBegin);
        events.segment(0x1000000, 20 * kMiB);
        events.block(0x1000000, 500, 512);
        events.add(EventKind::kCheckpointEnd);
        add_history(&events);
        return measure_device(events.timeline, 0).state_only;
    };
    CHECK(is_state([](Events*) {}));
    CHECK_FALSE(is_state([](Events* events) { events->free(0x1000000); }));
    CHECK_FALSE(is_state([](Events* events) { events->block(0x1000200, 500, 512); }));
}
