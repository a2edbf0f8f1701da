// The memory state that follows from recorded events: memory of the driver.
#include "analyzer/support/units.h"
#include "tests/support/measured.h"
#include "tests/unit/model/recorded_states.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

TEST_CASE("memory of other libraries in the process is counted separately", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kDeviceAlloc, kBase + 64 * kMiB, 3 * kMiB);
    events.add(EventKind::kPhysicalCreate, 0x11, 4 * kMiB);
    events.add(EventKind::kMap, kBase + 128 * kMiB, 4 * kMiB, 0x11);
    RecordedState state = at_end(events);
    CHECK(state.totals(0).reserved == 20 * kMiB);
    CHECK(state.totals(0).other == 7 * kMiB);
    CHECK(state.totals(0).own == 27 * kMiB);
    events.add(EventKind::kDeviceFree, kBase + 64 * kMiB);
    events.add(EventKind::kUnmap, kBase + 128 * kMiB, 4 * kMiB);
    events.add(EventKind::kPhysicalRelease, 0x11);
    state = at_end(events);
    CHECK(state.totals(0).other == 0);
    CHECK(state.totals(0).own == 20 * kMiB);
    CHECK(state.violations().count == 0);
}

TEST_CASE("an allocation that contains blocks belongs to the pool, whichever library made it",
          "[state]") {
    Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
    events.block(kBase + 512, 512, 512);
    const RecordedState state = at_end(events);
    CHECK(state.totals(0).reserved == 3 * kMiB);
    CHECK(state.totals(0).other == 0);
    CHECK(state.violations().count == 0);
}

TEST_CASE("on a device without a pool each allocation is a block", "[state]") {
    Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
    events.add(EventKind::kDeviceAlloc, kBase + 16 * kMiB, 5 * kMiB);
    events.add(EventKind::kDeviceFree, kBase);
    const RecordedState state = at_end(events);
    CHECK(!state.has_block_layer(0));
    CHECK(state.totals(0).reserved == 5 * kMiB);
    CHECK(state.totals(0).requested == 5 * kMiB);
    const HeapSnapshot heap = state.snapshot(0);
    check_snapshot(heap);
    REQUIRE(heap.blocks.size() == 1);
    CHECK(heap.blocks[0].allocated_by == 1);
    CHECK(heap.segments[0].size_class == SizeClass::kNone);
    CHECK(state.violations().count == 0);
}

TEST_CASE("the mapped ranges of a reservation are its segments", "[state]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, 100 * kMiB, 0, kFlagFromAllocator).device(31);
    events.add(EventKind::kAddressReserve, kBase + 100 * kMiB, 100 * kMiB).device(31);
    for (std::uint64_t i = 0; i < 4; ++i) {
        events.page(kBase + i * 20 * kMiB, 20 * kMiB, 0x10 + i);
    }
    events.page(kBase + 80 * kMiB, 20 * kMiB, 0x20);
    events.page(kBase + 100 * kMiB, 20 * kMiB, 0x21);  // the neighbouring reservation
    events.block(kBase + 5 * kMiB, 30 * kMiB, 30 * kMiB, 2);
    RecordedState state = at_end(events);
    CHECK(state.violations().count == 0);
    CHECK(state.totals(0).reserved == 120 * kMiB);
    CHECK(state.totals(0).own == 120 * kMiB);
    HeapSnapshot heap = state.snapshot(0);
    check_snapshot(heap);
    REQUIRE(heap.segments.size() == 2);
    CHECK(heap.segments[0].size_bytes == 100 * kMiB);
    CHECK(heap.segments[0].expandable);
    CHECK(heap.segments[0].page_bytes == 20 * kMiB);
    CHECK(heap.segments[0].stream == 2);
    CHECK(heap.segments[0].size_class == SizeClass::kLarge);
    // Pages 0 and 1 are in use, the other four are free.
    CHECK(state.releasable_bytes(0) == 80 * kMiB);
    CHECK(state.largest_free_bytes(0) == 65 * kMiB);
    SECTION("unmapping in the middle makes two segments") {
        events.unmap(kBase + 60 * kMiB, 20 * kMiB, 0x13);
        state = at_end(events);
        CHECK(state.totals(0).reserved == 100 * kMiB);
        CHECK(state.totals(0).own == 100 * kMiB);
        heap = state.snapshot(0);
        check_snapshot(heap);
        REQUIRE(heap.segments.size() == 3);
        CHECK(heap.segments[0].size_bytes == 60 * kMiB);
        CHECK(heap.segments[1].address == kBase + 80 * kMiB);
        SECTION("mapping again joins the two segments") {
            events.page(kBase + 60 * kMiB, 20 * kMiB, 0x30);
            CHECK(at_end(events).snapshot(0).segments.size() == 2);
        }
        CHECK(at_end(events).violations().count == 0);
    }
    SECTION("a live block with unmapped pages is left out of all sums") {
        events.unmap(kBase, 20 * kMiB, 0x10);
        events.unmap(kBase + 20 * kMiB, 20 * kMiB, 0x11);
        state = at_end(events);
        CHECK(state.detached_blocks(0) == 1);
        CHECK(state.totals(0).allocated == 0);
        events.page(kBase, 20 * kMiB, 0x40);
        CHECK(at_end(events).detached_blocks(0) == 1);
        events.page(kBase + 20 * kMiB, 20 * kMiB, 0x41);
        state = at_end(events);
        CHECK(state.detached_blocks(0) == 0);
        CHECK(state.totals(0).allocated == 30 * kMiB);
        CHECK(state.violations().count == 0);
        check_snapshot(state.snapshot(0));
    }
}

TEST_CASE("a device reset ends all memory", "[state]") {
    Events events;
    events.segment(kBase, 2 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kDeviceReset);
    events.segment(kBase, 2 * kMiB);
    const RecordedState state = at_end(events);
    CHECK(state.totals(0).reserved == 2 * kMiB);
    CHECK(state.totals(0).allocated == 0);
    CHECK(state.violations().count == 0);
}

TEST_CASE("the driver's free memory follows from the last sample and later events", "[state]") {
    Events events;
    CHECK(at_end(events).device_free_bytes(0) == 0);
    events.segment(kBase, 20 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 50 * kMiB, 80 * kMiB);
    events.segment(kBase + 64 * kMiB, 20 * kMiB);
    CHECK(at_end(events).device_free_bytes(0) == 30 * kMiB);
    events.segment_free(kBase);
    const RecordedState state = at_end(events);
    CHECK(state.device_free_bytes(0) == 50 * kMiB);
    CHECK(state.snapshot(0).device_free_bytes == 50 * kMiB);
}

// Measured on an H200: the driver refused 20 MiB and reported 22,609,920 bytes as free.
TEST_CASE("free memory that the driver refused to give counts as used", "[state]") {
    constexpr std::uint64_t kReported = 22609920;
    const auto refuse = [](Events* events, std::uint64_t bytes, std::uint64_t reported) {
        events->add(EventKind::kAllocRefused, 0, bytes);
        events->add(EventKind::kMemoryInfo, 0, reported, 80 * kMiB);
    };
    Events events;
    events.segment(kBase, 20 * kMiB);
    refuse(&events, 20 * kMiB, kReported);
    CHECK(at_end(events).device_free_bytes(0) == 20 * kMiB - 1);
    CHECK(at_end(events).sample(0).kept_bytes == kReported - 20 * kMiB + 1);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 40 * kMiB - 1);

    SECTION("in later reports too") {
        refuse(&events, kMiB << 10, kReported);
        CHECK(at_end(events).device_free_bytes(0) == 20 * kMiB - 1);
        events.segment_free(kBase);
        events.add(EventKind::kMemoryInfo, 0, kReported + 20 * kMiB, 80 * kMiB);
        CHECK(at_end(events).device_free_bytes(0) == 40 * kMiB - 1);
    }
    SECTION("the largest difference counts") {
        refuse(&events, 19 * kMiB, kReported);
        CHECK(at_end(events).device_free_bytes(0) == 19 * kMiB - 1);
        refuse(&events, 21 * kMiB, kReported);
        CHECK(at_end(events).device_free_bytes(0) == 19 * kMiB - 1);
    }
    SECTION("never below nothing") {
        events.add(EventKind::kMemoryInfo, 0, 4096, 80 * kMiB);
        CHECK(at_end(events).device_free_bytes(0) == 0);
    }
}

TEST_CASE("a report of free memory that a refusal does not contradict stays as it is", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.add(EventKind::kAllocRefused, 0, 20 * kMiB);
    std::uint64_t reported = 0;
    SECTION("less is free than was refused") {
        reported = 20 * kMiB - 1;
    }
    SECTION("so much more is free that another process must have freed it") {
        reported = 53 * kMiB;
    }
    SECTION("the process itself freed memory in between") {
        events.segment_free(kBase);
        reported = 22 * kMiB;
    }
    SECTION("the report comes much later") {
        for (int i = 0; i < 4; ++i) {
            events.add(EventKind::kCallTime);
        }
        reported = 22 * kMiB;
    }
    events.add(EventKind::kMemoryInfo, 0, reported, 80 * kMiB);
    CHECK(at_end(events).device_free_bytes(0) == reported);
    CHECK(at_end(events).sample(0).kept_bytes == 0);
}

TEST_CASE("stream-ordered allocations are blocks on a device without a pool", "[state]") {
    Events events;
    events.timeline.facts["allocator_backend"] = "cudaMallocAsync";
    events.add(EventKind::kAsyncAlloc, kBase, 3 * kMiB, 0, kFlagFromAllocator).stream(1);
    events.add(EventKind::kAsyncAlloc, kBase + 4 * kMiB, 1 * kMiB, 0, kFlagFromAllocator);
    RecordedState state = at_end(events);
    CHECK_FALSE(state.has_block_layer(0));
    CHECK(state.totals(0).allocated == 4 * kMiB);
    CHECK(state.totals(0).own == 4 * kMiB);
    CHECK(state.snapshot(0).blocks.at(0).stream == 1);
    events.add(EventKind::kAsyncFree, kBase);
    events.add(EventKind::kDeviceFree, kBase + 4 * kMiB);  // legal for both kinds
    state = at_end(events);
    CHECK(state.totals(0).own == 0);
    CHECK(state.totals(0).blocks == 0);
}

TEST_CASE("arrays, graphs and stream-ordered memory outside a pool count as the process's own",
          "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 2 * kMiB, 2 * kMiB);
    events.add(EventKind::kAsyncAlloc, kBase + 64 * kMiB, 1 * kMiB);
    events.add(EventKind::kArrayAlloc, 0xa1, 2 * kMiB);
    events.add(EventKind::kArrayAlloc, 0xa2, kUnknown64);
    events.add(EventKind::kGraphMemory, 0, 1 * kMiB, 4 * kMiB);
    events.add(EventKind::kHostAlloc, 0x1000, 100 * kMiB);
    events.add(EventKind::kManagedAlloc, kBase + 128 * kMiB, 100 * kMiB);
    RecordedState state = at_end(events);
    CHECK(state.totals(0).other == 7 * kMiB);
    CHECK(state.totals(0).own == 27 * kMiB);
    CHECK(state.totals(0).reserved == 20 * kMiB);
    events.add(EventKind::kGraphMemory, 0, 0, 0);
    events.add(EventKind::kArrayFree, 0xa1);
    events.add(EventKind::kArrayFree, 0xa2);
    events.add(EventKind::kAsyncFree, kBase + 64 * kMiB);
    state = at_end(events);
    CHECK(state.totals(0).other == 0);
    CHECK(state.totals(0).own == 20 * kMiB);
    CHECK(state.violations().count == 0);
}

TEST_CASE("the end of the last context ends all memory of the device", "[state]") {
    Events events;
    events.add(EventKind::kContextCreate, 0xc1);
    events.add(EventKind::kContextCreate, 0xc2);
    events.add(EventKind::kDeviceAlloc, kBase, 1 * kMiB);
    events.add(EventKind::kContextDestroy, 0xc1);
    CHECK(at_end(events).totals(0).own == 1 * kMiB);
    events.add(EventKind::kContextDestroy, 0xc2);
    CHECK(at_end(events).totals(0).own == 0);
}

TEST_CASE("an address allocated again after a context's end belonged to that context", "[state]") {
    Events events;
    events.add(EventKind::kContextCreate, 0xc1);
    events.add(EventKind::kContextCreate, 0xc2);
    events.add(EventKind::kDeviceAlloc, kBase, 1 * kMiB);
    SECTION("a context was destroyed in between") {
        events.add(EventKind::kContextDestroy, 0xc1);
        events.add(EventKind::kDeviceAlloc, kBase, 4 * kMiB);
        CHECK(at_end(events).totals(0).own == 4 * kMiB);
        CHECK(at_end(events).violations().count == 0);
        CHECK(measure_device(events.timeline, 0).summary.segments_allocated == 2);
    }
    SECTION("no context was destroyed in between: a violation") {
        events.add(EventKind::kDeviceAlloc, kBase, 4 * kMiB);
        CHECK(at_end(events).totals(0).own == 4 * kMiB);
        CHECK(at_end(events).violations().count == 1);
    }
}

TEST_CASE("a segment with an address range of its own stays while a sleep mode unmaps it",
          "[state]") {
    Events events;
    events.segment(kBase + 64 * kMiB, 2 * kMiB);
    events.block(kBase + 64 * kMiB, 2 * kMiB, 2 * kMiB);
    events.add(EventKind::kAddressReserve, kBase, 8 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kPhysicalCreate, 0x61, 8 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kMap, kBase, 8 * kMiB, 0x61, kFlagFromAllocator);
    events.block(kBase, 8 * kMiB, 8 * kMiB);
    const auto check = [&events](std::uint64_t reserved, std::uint64_t own) {
        const RecordedState state = at_end(events);
        CHECK(state.totals(0).reserved == reserved);
        CHECK(state.totals(0).allocated == reserved);
        CHECK(state.totals(0).own == own);
        CHECK(state.totals(0).own_pool() == own);
        CHECK(state.detached_blocks(0) == 0);
        CHECK(state.violations().count == 0);
        CHECK_FALSE(state.snapshot(0).segments.at(0).expandable);
    };
    check(10 * kMiB, 10 * kMiB);
    events.add(EventKind::kUnmap, kBase, 8 * kMiB);
    events.add(EventKind::kPhysicalRelease, 0x61);
    check(10 * kMiB, 2 * kMiB);
    SECTION("it is mapped again, by another library") {
        events.add(EventKind::kPhysicalCreate, 0x62, 8 * kMiB);
        CHECK(at_end(events).totals(0).other == 8 * kMiB);
        events.add(EventKind::kMap, kBase, 8 * kMiB, 0x62);
        check(10 * kMiB, 10 * kMiB);
        events.add(EventKind::kAddressReserve, kBase + 8 * kMiB, 2 * kMiB);
        events.add(EventKind::kPhysicalCreate, 0x63, 2 * kMiB);
        events.add(EventKind::kMap, kBase + 8 * kMiB, 2 * kMiB, 0x63);
        CHECK(at_end(events).totals(0).other == 2 * kMiB);  // not in the segment's range
    }
    SECTION("its end was lost, and its addresses are reserved again") {
        events.add(EventKind::kBlockFree, kBase, 8 * kMiB);
        events.add(EventKind::kAddressReserve, kBase, 4 * kMiB, 0, kFlagFromAllocator);
        check(2 * kMiB, 2 * kMiB);
        CHECK(at_end(events).totals(0).unmapped == 0);
    }
    SECTION("it ends while it is unmapped") {
        events.add(EventKind::kBlockFree, kBase, 8 * kMiB);
        events.add(EventKind::kAddressFree, kBase, 8 * kMiB);
        check(2 * kMiB, 2 * kMiB);
    }
}

TEST_CASE("physical memory lives as long as its handle or a mapping", "[state]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, 64 * kMiB);
    events.add(EventKind::kPhysicalCreate, 0x51, 2 * kMiB);
    events.add(EventKind::kMap, kBase, 2 * kMiB, 0x51);
    events.add(EventKind::kPhysicalRetain, 0x51);
    events.add(EventKind::kPhysicalRelease, 0x51);
    events.add(EventKind::kPhysicalRelease, 0x51);
    CHECK(at_end(events).totals(0).own == 2 * kMiB);
    events.add(EventKind::kUnmap, kBase, 2 * kMiB);
    CHECK(at_end(events).totals(0).own == 0);
    SECTION("imported memory does not count") {
        events.add(EventKind::kImport, 0x52, 2 * kMiB);
        events.add(EventKind::kMap, kBase, 2 * kMiB, 0x52);
        CHECK(at_end(events).totals(0).own == 0);
        CHECK(at_end(events).totals(0).reserved == 0);
    }
}

TEST_CASE("physical memory without a pool counts from creation to end, even unmapped", "[state]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, 64 * kMiB);
    events.add(EventKind::kPhysicalCreate, 0x51, 2 * kMiB);
    check_held(events, 2 * kMiB, 1);
    events.add(EventKind::kPhysicalCreate, 0x52, 6 * kMiB);
    events.add(EventKind::kMap, kBase, 2 * kMiB, 0x51).device(31);
    check_held(events, 8 * kMiB, 2);
    CHECK(at_end(events).snapshot(0).blocks.at(0).allocated_by == 1);
    SECTION("a second mapping does not count again") {
        events.add(EventKind::kMap, kBase + 8 * kMiB, 2 * kMiB, 0x51).device(31);
        check_held(events, 8 * kMiB, 2);
        events.add(EventKind::kUnmap, kBase, 2 * kMiB).device(31);
        events.add(EventKind::kPhysicalRelease, 0x51);
        check_held(events, 8 * kMiB, 2);
        events.add(EventKind::kUnmap, kBase + 8 * kMiB, 2 * kMiB).device(31);
        check_held(events, 6 * kMiB, 1);
    }
    SECTION("a handle number used again while its old memory is still mapped") {
        events.add(EventKind::kPhysicalRelease, 0x51);
        events.add(EventKind::kPhysicalCreate, 0x51, 4 * kMiB);
        check_held(events, 12 * kMiB, 3);
        events.add(EventKind::kUnmap, kBase, 2 * kMiB).device(31);
        check_held(events, 10 * kMiB, 2);
        events.add(EventKind::kPhysicalRelease, 0x51);
        check_held(events, 6 * kMiB, 1);
    }
    SECTION("one unmap ends several mappings") {
        events.add(EventKind::kMap, kBase + 2 * kMiB, 6 * kMiB, 0x52).device(31);
        events.add(EventKind::kPhysicalRelease, 0x51);
        events.add(EventKind::kPhysicalRelease, 0x52);
        check_held(events, 8 * kMiB, 2);
        events.add(EventKind::kUnmap, kBase, 8 * kMiB).device(31);
        check_held(events, 0, 0);
    }
    SECTION("imported memory and a multicast object have no bytes") {
        events.add(EventKind::kImport, 0x53, kUnknown64);
        events.add(EventKind::kMap, kBase + 16 * kMiB, 2 * kMiB, 0x53).device(31);
        events.add(EventKind::kPhysicalCreate, 0x54, 0).device(31);
        events.add(EventKind::kMap, kBase + 32 * kMiB, 2 * kMiB, 0x54).device(31);
        check_held(events, 8 * kMiB, 2);
    }
    SECTION("a mapping whose creation was not recorded counts as its memory") {
        events.add(EventKind::kMap, kBase + 16 * kMiB, 2 * kMiB, 0x99);
        check_held(events, 10 * kMiB, 3);
        events.add(EventKind::kUnmap, kBase + 16 * kMiB, 2 * kMiB);
        check_held(events, 8 * kMiB, 2);
    }
    SECTION("a reset ends all, later allocations count from zero") {
        events.add(EventKind::kDeviceReset);
        check_held(events, 0, 0);
        events.add(EventKind::kPhysicalCreate, 0x51, 2 * kMiB);
        check_held(events, 2 * kMiB, 1);
    }
}

TEST_CASE("arrays and graphs without a pool count like all other memory", "[state]") {
    Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 3 * kMiB);
    events.add(EventKind::kAsyncAlloc, kBase + 16 * kMiB, 5 * kMiB);
    events.add(EventKind::kArrayAlloc, 0xa1, 2 * kMiB);
    events.add(EventKind::kArrayAlloc, 0xa2, kUnknown64);
    events.add(EventKind::kGraphMemory, 0, 1 * kMiB, 4 * kMiB);
    events.add(EventKind::kManagedAlloc, kBase + 128 * kMiB, 100 * kMiB);
    check_held(events, 14 * kMiB, 4);
    events.add(EventKind::kGraphMemory, 0, 1 * kMiB, 6 * kMiB);
    check_held(events, 16 * kMiB, 4);
    events.add(EventKind::kGraphMemory, 0, 0, 0);
    events.add(EventKind::kArrayFree, 0xa1);
    events.add(EventKind::kArrayFree, 0xa2);
    check_held(events, 8 * kMiB, 2);
}

TEST_CASE("physical memory outside a pool counts once as other memory, mapped or not", "[state]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kPhysicalCreate, 0x11, 4 * kMiB);
    CHECK(at_end(events).totals(0).other == 4 * kMiB);
    events.add(EventKind::kMap, kBase + 128 * kMiB, 4 * kMiB, 0x11).device(31);
    events.add(EventKind::kMap, kBase + 256 * kMiB, 4 * kMiB, 0x11).device(31);
    CHECK(at_end(events).totals(0).other == 4 * kMiB);
    events.page(kBase + 512 * kMiB, 2 * kMiB, 0x12);
    RecordedState state = at_end(events);
    CHECK(state.totals(0).other == 4 * kMiB);
    CHECK(state.totals(0).reserved == 22 * kMiB);
    CHECK(state.totals(0).own == 26 * kMiB);
    events.unmap(kBase + 512 * kMiB, 2 * kMiB, 0x12);
    events.add(EventKind::kPhysicalRelease, 0x11);
    events.add(EventKind::kUnmap, kBase + 128 * kMiB, 256 * kMiB).device(31);
    state = at_end(events);
    CHECK(state.totals(0).other == 0);
    CHECK(state.totals(0).own == 20 * kMiB);
    CHECK(state.violations().count == 0);
}
