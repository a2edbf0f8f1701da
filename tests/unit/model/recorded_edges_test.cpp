// Recorded memory when a pool, a context or a mapping is replaced by another at the same address.
#include "analyzer/support/units.h"
#include "tests/unit/model/recorded_states.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

// Assigns the event added last to this private pool.
void of_pool(Events* events, std::uint32_t pool) {
    events->timeline.event_pools.add(static_cast<EventIndex>(events->timeline.events.size() - 1),
                                     pool);
}

void pool_block(Events* events, std::uint64_t address, std::uint32_t pool) {
    events->block(address, kMiB, kMiB);
    of_pool(events, pool);
}

}  // namespace

TEST_CASE("a rewind does not end blocks of another pool at the same addresses", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    pool_block(&events, kBase, 5);
    events.free(kBase);
    events.segment_free(kBase);
    events.segment(kBase, 20 * kMiB);
    pool_block(&events, kBase, 6);
    events.add(EventKind::kPoolRewind);
    of_pool(&events, 5);
    CHECK(at_end(events).totals(0).blocks == 1);
    events.add(EventKind::kPoolRewind);
    of_pool(&events, 6);
    CHECK(at_end(events).totals(0).blocks == 0);
}

TEST_CASE("a rewind forgets detached blocks of its own pool only", "[state]") {
    Events events;
    pool_block(&events, kBase, 5);
    pool_block(&events, kBase + 2 * kMiB, 6);
    events.add(EventKind::kPoolRewind);
    of_pool(&events, 5);
    const std::uint64_t before = at_end(events).violations().count;
    CHECK(at_end(events).detached_blocks(0) == 1);
    events.free(kBase + 2 * kMiB);
    CHECK(at_end(events).violations().count == before);
    events.free(kBase);
    CHECK(at_end(events).violations().count == before + 1);
}

TEST_CASE("the largest hole is free memory", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase + 4 * kMiB, 10 * kMiB, 10 * kMiB);
    CHECK(at_end(events).largest_free_bytes(0) == 6 * kMiB);
}

TEST_CASE("a released pool stays releasable when a use ends, until a new use begins", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    pool_block(&events, kBase, 5);
    events.free(kBase);
    const auto add = [&events](EventKind kind, std::uint64_t begins) {
        events.add(kind, 0, begins);
        of_pool(&events, 5);
        return at_end(events).releasable_bytes(0);
    };
    CHECK(add(EventKind::kPoolUse, 1) == 0);
    CHECK(add(EventKind::kPoolUse, 0) == 0);
    CHECK(add(EventKind::kPoolRelease, 0) == 20 * kMiB);
    CHECK(add(EventKind::kPoolUse, 0) == 20 * kMiB);
    CHECK(add(EventKind::kPoolUse, 1) == 0);
}

TEST_CASE("after a checkpoint only the pools listed in it are in use", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    pool_block(&events, kBase, 5);
    events.free(kBase);
    events.add(EventKind::kPoolRelease);
    of_pool(&events, 5);
    events.add(EventKind::kCheckpointBegin);
    events.segment(kBase, 20 * kMiB);
    pool_block(&events, kBase, 5);
    events.add(EventKind::kCheckpointEnd);
    events.free(kBase);
    CHECK(at_end(events).releasable_bytes(0) == 0);
}

TEST_CASE("an allocation that becomes a segment replaces the segments in it", "[state]") {
    Events events;
    events.segment(kBase + 64 * kMiB, 2 * kMiB);
    events.block(kBase + 64 * kMiB, 2 * kMiB, 2 * kMiB);
    events.add(EventKind::kDeviceAlloc, kBase, 16 * kMiB);
    events.segment(kBase + 8 * kMiB, 4 * kMiB);
    events.block(kBase + 8 * kMiB, kMiB, kMiB);
    events.block(kBase, kMiB, kMiB);  // in the first allocation
    const RecordedState state = at_end(events);
    const HeapSnapshot heap = state.snapshot(0);
    REQUIRE(heap.segments.size() == 2);
    CHECK(heap.segments[0].address == kBase);
    CHECK(heap.segments[0].size_bytes == 16 * kMiB);
    CHECK(state.totals(0).reserved == 18 * kMiB);
    CHECK(state.totals(0).blocks == 3);
    CHECK(state.totals(0).other == 0);
    CHECK(state.violations().count == 1);
}

TEST_CASE("a block ends the blocks in its way that its new segment brings back", "[state]") {
    Events events;
    events.segment(kBase + 64 * kMiB, 2 * kMiB);
    events.block(kBase + 64 * kMiB, kMiB, kMiB);
    events.block(kBase + 8 * kMiB, 2 * kMiB, 2 * kMiB);  // in no segment
    events.add(EventKind::kDeviceAlloc, kBase, 16 * kMiB);
    events.block(kBase + 7 * kMiB, 2 * kMiB, 2 * kMiB);  // the allocation becomes a segment
    const RecordedState state = at_end(events);
    check_snapshot(state.snapshot(0));
    CHECK(state.totals(0).blocks == 2);
    CHECK(state.totals(0).allocated == 3 * kMiB);
    CHECK(state.violations().count == 2);
}

TEST_CASE("ten violations are described, and all are counted", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, kMiB, kMiB);
    for (std::uint64_t i = 1; i <= 12; ++i) {
        events.free(kBase + i * kMiB);
    }
    CHECK(at_end(events).violations().count == 12);
    CHECK(at_end(events).violations().first.size() == 10);
}

TEST_CASE("memory ends with a context only if it was allocated before the context's end",
          "[state]") {
    for (const bool before : {true, false}) {
        CAPTURE(before);
        Events events;
        events.segment(kBase + 64 * kMiB, 20 * kMiB);
        events.block(kBase + 64 * kMiB, kMiB, kMiB);
        events.add(EventKind::kContextCreate, 0x11);
        events.add(EventKind::kContextCreate, 0x22);
        for (const bool now : {true, false}) {
            if (now == before) {
                events.add(EventKind::kDeviceAlloc, kBase, 4 * kMiB);
            }
            if (now) {
                events.add(EventKind::kContextDestroy, 0x11);
            }
        }
        events.add(EventKind::kDeviceAlloc, kBase, 4 * kMiB);
        CHECK(at_end(events).violations().count == (before ? 0 : 1));
        CHECK(at_end(events).totals(0).other == 4 * kMiB);
    }
}

TEST_CASE("unmapping part of a range does not change the size of its reservation", "[state]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, 1024 * kMiB, 0, kFlagFromAllocator);
    events.page(kBase, 40 * kMiB, 1);
    events.block(kBase, kMiB, kMiB);
    const HeapSnapshot whole = at_end(events).snapshot(0);
    REQUIRE(whole.segments.size() == 1);
    CHECK(whole.segments[0].reservation == kBase);
    CHECK(whole.segments[0].reservation_bytes == 1024 * kMiB);
    events.free(kBase);
    events.add(EventKind::kUnmap, kBase, 10 * kMiB, 0, kFlagFromAllocator).device(31);
    CHECK(at_end(events).totals(0).reserved == 30 * kMiB);
}
