// The memory state that follows from recorded events: blocks of a pool, and the state as a whole.
#include "analyzer/support/units.h"
#include "tests/unit/model/recorded_states.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

TEST_CASE("the sums of blocks in a segment add up", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 1000, 1024);
    events.block(kBase + 1024, 1 * kMiB, 2 * kMiB, 1);
    events.block(kBase + 4 * kMiB, kUnknown64, 512);
    events.free(kBase);
    const RecordedState state = at_end(events);
    const MemoryTotals& totals = state.totals(0);
    CHECK(state.violations().count == 0);
    CHECK(state.has_block_layer(0));
    CHECK(totals.reserved == 20 * kMiB);
    CHECK(totals.own == 20 * kMiB);
    CHECK(totals.other == 0);
    CHECK(totals.allocated == 2 * kMiB + 512);
    CHECK(totals.requested == 1 * kMiB + 512);
    CHECK(totals.rounding == 0);
    CHECK(totals.slack == 1 * kMiB);
    CHECK(totals.blocks == 2);
    CHECK(totals.requests_unknown == 1);
    CHECK(state.releasable_bytes(0) == 0);
    CHECK(state.largest_free_bytes(0) == 16 * kMiB - 512);
    const HeapSnapshot heap = state.snapshot(0);
    check_snapshot(heap);
    REQUIRE(heap.segments.size() == 1);
    CHECK(heap.segments[0].size_class == SizeClass::kLarge);
    CHECK(heap.segments[0].stream == 0);
    REQUIRE(heap.blocks.size() == 5);
    CHECK(heap.blocks[0].state == BlockState::kFree);
    CHECK(heap.blocks[0].size_bytes == 1024);
    CHECK(heap.blocks[1].state == BlockState::kLive);
    CHECK(heap.blocks[1].stream == 1);
    CHECK(heap.blocks[1].allocated_by == 2);
    CHECK(heap.blocks[3].requested_bytes == kUnknown64);
}

TEST_CASE("rounding and slack are counted separately", "[state]") {
    Events events;
    events.segment(kBase, 2 * kMiB);
    events.block(kBase, 100, 1024);
    const RecordedState state = at_end(events);
    CHECK(state.totals(0).requested == 100);
    CHECK(state.totals(0).rounding == 412);
    CHECK(state.totals(0).slack == 512);
    CHECK(state.snapshot(0).segments.at(0).size_class == SizeClass::kSmall);
}

TEST_CASE("a pending block is active until its events have completed", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 1 * kMiB, 1 * kMiB);
    events.free(kBase, true);
    events.add(EventKind::kPendingEvent, kBase, 0, 0xe1);
    events.add(EventKind::kPendingEvent, kBase, 0, 0xe2);
    RecordedState state = at_end(events);
    CHECK(state.totals(0).pending == 1 * kMiB);
    CHECK(state.totals(0).allocated == 0);
    CHECK(state.totals(0).requested == 0);
    CHECK(state.releasable_bytes(0) == 0);
    CHECK(state.snapshot(0).blocks.at(0).state == BlockState::kPending);
    SECTION("completed by its events") {
        events.add(EventKind::kEventComplete, 0, 0, 0xe2);
        CHECK(at_end(events).totals(0).pending == 1 * kMiB);
        events.add(EventKind::kEventComplete, 0, 0, 0xe1);
        state = at_end(events);
        CHECK(state.totals(0).pending == 0);
        CHECK(state.releasable_bytes(0) == 20 * kMiB);
    }
    SECTION("completed at the latest when its address is allocated again") {
        events.block(kBase, 2 * kMiB, 2 * kMiB);
        // A late completion must not affect the new block.
        events.free(kBase, true);
        events.add(EventKind::kPendingEvent, kBase, 0, 0xe3);
        events.add(EventKind::kEventComplete, 0, 0, 0xe1);
        events.add(EventKind::kEventComplete, 0, 0, 0xe2);
        state = at_end(events);
        CHECK(state.totals(0).pending == 2 * kMiB);
    }
    SECTION("completed at the latest when its segment is freed") {
        events.segment_free(kBase);
        state = at_end(events);
        CHECK(state.totals(0).pending == 0);
        CHECK(state.totals(0).reserved == 0);
    }
    CHECK(state.violations().count == 0);
}

TEST_CASE("violations are counted and described, and the sums stay sound", "[state]") {
    Events events;
    events.segment(kBase, 2 * kMiB);
    events.block(kBase, 512, 512);
    std::string expected;
    SECTION("a block over a live block") {
        events.block(kBase + 256, 512, 512);
        expected = "overlaps";
    }
    SECTION("a block in no segment") {
        events.block(kBase + 2 * kMiB - 512, 1024, 1024);
        expected = "in no segment";
    }
    SECTION("a free without an allocation") {
        events.free(kBase + 512);
        expected = "was not live";
    }
    SECTION("a double free") {
        events.free(kBase, true);
        events.free(kBase, true);
        expected = "was not live";
    }
    SECTION("a segment freed under a live block") {
        events.segment_free(kBase);
        expected = "was returned to the driver";
    }
    SECTION("a segment over another segment") {
        events.segment(kBase + 1 * kMiB, 2 * kMiB);
        expected = "still belongs to the pool";
    }
    SECTION("a block smaller than its request") {
        events.block(kBase + 512, 1024, 512);
        expected = "smaller than";
    }
    SECTION("more memory than the device has") {
        events.add(EventKind::kMemoryInfo, 0, 0, 1 * kMiB);
        events.block(kBase + 512, 512, 512);
        expected = "than the device has";
    }
    const RecordedState state = at_end(events);
    REQUIRE(state.violations().count >= 1);
    CHECK(state.violations().first.at(0).find(expected) != std::string::npos);
    const MemoryTotals& totals = state.totals(0);
    CHECK(totals.requested + totals.rounding + totals.slack == totals.allocated);
    CHECK(totals.active() <= totals.reserved);
    check_snapshot(state.snapshot(0));
}

TEST_CASE("private pools keep their segments while they are in use", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.segment(kBase + 32 * kMiB, 20 * kMiB);
    events.block(kBase, 2 * kMiB, 2 * kMiB);
    events.block(kBase + 32 * kMiB, 2 * kMiB, 2 * kMiB);
    events.timeline.event_pools.add(3, 9);
    events.free(kBase);
    events.free(kBase + 32 * kMiB);
    CHECK(at_end(events).releasable_bytes(0) == 20 * kMiB);
    const HeapSnapshot heap = at_end(events).snapshot(0);
    REQUIRE(heap.segments.size() == 2);
    CHECK(heap.segments[0].private_pool == 0);
    CHECK(heap.segments[0].may_release);
    CHECK(heap.segments[1].private_pool == 9);
    CHECK_FALSE(heap.segments[1].may_release);
    events.add(EventKind::kPoolRelease).device(31);  // means every device
    events.timeline.event_pools.add(6, 9);
    CHECK(at_end(events).releasable_bytes(0) == 40 * kMiB);
    events.add(EventKind::kPoolUse, 0, 1);
    events.timeline.event_pools.add(7, 9);
    CHECK(at_end(events).releasable_bytes(0) == 20 * kMiB);
}

TEST_CASE("after a rewind a pool has the blocks announced after it", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.segment(kBase + 32 * kMiB, 20 * kMiB);
    events.block(kBase, 2 * kMiB, 2 * kMiB);
    for (std::uint64_t i = 0; i < 3; ++i) {
        events.block(kBase + (32 + i) * kMiB, 1 * kMiB, 1 * kMiB);
        events.timeline.event_pools.add(static_cast<EventIndex>(3 + i), 9);
    }
    events.add(EventKind::kPoolRewind);
    events.timeline.event_pools.add(6, 9);
    CHECK(at_end(events).totals(0).allocated == 2 * kMiB);
    events.block(kBase + 33 * kMiB, 1 * kMiB, 1 * kMiB);
    events.timeline.event_pools.add(7, 9);
    const RecordedState state = at_end(events);
    CHECK(state.violations().count == 0);
    CHECK(state.totals(0).allocated == 3 * kMiB);
    CHECK(state.totals(0).blocks == 2);
    check_snapshot(state.snapshot(0));
}

TEST_CASE("impossible sizes are counted as violations", "[state]") {
    Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
    events.add(EventKind::kPhysicalCreate, 0x11, kUnknown64);
    events.add(EventKind::kArrayAlloc, 0xa1, kUnknown64 - 1);
    events.add(EventKind::kGraphMemory, 0, 0, kUnknown64 - 1);
    events.add(EventKind::kPhysicalRelease, 0x11);
    events.add(EventKind::kArrayFree, 0xa1);
    const RecordedState state = at_end(events);
    CHECK(state.totals(0).own == 3 * kMiB);
    CHECK(state.violations().count == 3);
}

TEST_CASE("a checkpoint replaces the state, mismatches after a gap are no violations", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 2 * kMiB, 2 * kMiB);
    events.add(EventKind::kRecordingStopped);
    events.add(EventKind::kRecordingStarted);
    events.free(kBase + 8 * kMiB);            // allocated during the gap
    events.block(kBase, 4 * kMiB, 4 * kMiB);  // the previous block was freed during the gap
    RecordedState state = at_end(events);
    CHECK(state.violations().count == 0);
    CHECK(state.after_gap() == 2);
    events.add(EventKind::kCheckpointBegin);
    events.segment(kBase + 64 * kMiB, 20 * kMiB);
    events.block(kBase + 64 * kMiB, 1 * kMiB, 2 * kMiB);
    events.add(EventKind::kCheckpointEnd);
    events.free(kBase);  // this one is a violation again
    state = at_end(events);
    CHECK(state.totals(0).reserved == 20 * kMiB);
    CHECK(state.totals(0).allocated == 2 * kMiB);
    CHECK(state.violations().count == 1);
}

namespace {

bool equal(const MemoryTotals& a, const MemoryTotals& b) {
    return a.requested == b.requested && a.rounding == b.rounding && a.slack == b.slack &&
           a.allocated == b.allocated && a.pending == b.pending && a.reserved == b.reserved &&
           a.other == b.other && a.own == b.own && a.blocks == b.blocks &&
           a.requests_unknown == b.requests_unknown;
}

}  // namespace

TEST_CASE("applying events one by one gives the same state as the whole timeline", "[state]") {
    Events events;
    SECTION("without a pool") {
        events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
        events.add(EventKind::kArrayAlloc, 7, kMiB);
        events.add(EventKind::kDeviceAlloc, kBase + 8 * kMiB, kMiB);
        events.add(EventKind::kDeviceFree, kBase);
    }
    SECTION("memory of other libraries before the pool's first segment") {
        events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
        events.add(EventKind::kPhysicalCreate, 9, 2 * kMiB);
        events.add(EventKind::kMap, kBase + 64 * kMiB, 2 * kMiB, 9).device(31);
        events.segment(kBase + 8 * kMiB, 20 * kMiB);
        events.block(kBase + 8 * kMiB, 1000, 1024);
        events.add(EventKind::kUnmap, kBase + 64 * kMiB, 2 * kMiB).device(31);
        events.add(EventKind::kPhysicalRelease, 9);
    }
    SECTION("a pool whose segments were not marked as a pool's") {
        events.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB);
        events.add(EventKind::kDeviceAlloc, kBase + 32 * kMiB, 2 * kMiB);
        events.block(kBase + kMiB, 1000, 1024);
        events.block(kBase + 2 * kMiB, kMiB, kMiB);
        events.free(kBase + kMiB, true);
    }
    SECTION("several devices, the last one first") {
        events.add(EventKind::kDeviceAlloc, kBase, kMiB).device(2);
        events.segment(kBase + 8 * kMiB, 2 * kMiB);
        events.block(kBase + 8 * kMiB, 512, 512);
    }
    const RecordedState whole = at_end(events);
    const RecordedState live = one_by_one(events);
    CHECK(live.devices() == whole.devices());
    for (const DeviceId device : whole.devices()) {
        CHECK(live.has_block_layer(device) == whole.has_block_layer(device));
        CHECK(equal(live.totals(device), whole.totals(device)));
        CHECK(live.largest_free_bytes(device) == whole.largest_free_bytes(device));
    }
    CHECK(live.violations().count == 0);
    CHECK(live.entries() == whole.entries());
}

TEST_CASE("the size of a state does not grow during a long recording", "[state]") {
    constexpr int kRounds = 50'000;
    RecordedState state;
    std::size_t most = 0;
    std::uint64_t applied = 0;
    for (int round = 0; round < kRounds; ++round) {
        Events events;
        const auto number = static_cast<std::uint64_t>(round);
        const DeviceAddress page = kBase + number % 8 * 20 * kMiB;
        const DeviceAddress segment = kBase + (1024 + number % 8 * 20) * kMiB;
        events.page(page, 20 * kMiB, number + 1);
        events.segment(segment, 20 * kMiB);
        events.block(page, 1000, 1024);
        events.block(segment, kMiB, kMiB);
        events.free(segment, true);
        events.add(EventKind::kPendingEvent, segment, 0, number);
        events.add(EventKind::kEventComplete, 0, 0, number);
        events.free(page);
        events.unmap(page, 20 * kMiB, number + 1);
        events.segment_free(segment);
        for (const Event& event : events.timeline.events) {
            state.apply(event, 0);
            most = std::max(most, state.entries());
            ++applied;
        }
    }
    CHECK(applied > 500'000);
    CHECK(most < 16);
    CHECK(state.totals(0).own == 0);
    CHECK(state.violations().count == 0);
}
