// Edge cases of a replay.
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/divergence_cause.h"
#include "analyzer/replay/fidelity.h"
#include "analyzer/replay/recorded_layout.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "analyzer/replay/unmapped_segments.h"
#include "tests/unit/model/events.h"
#include "tests/unit/pools/pool_driver.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;

TEST_CASE("a device limited by its capacity provides all of it and no byte more") {
    RecordedDevice device(1000, 1000);
    device.decide_by_capacity();
    CHECK_FALSE(device.take(1001));
    CHECK(device.take(1000));
    CHECK_FALSE(device.take(1));
}

TEST_CASE("settings without a device apply to all devices") {
    Events events;
    events.timeline.facts["text.1"] = "max_split_size_mb:64";
    events.timeline.facts["text.2"] = "max_split_size_mb:128";
    events.add(EventKind::kSettings, 0, 1).device(31);
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 512, 512);
    events.add(EventKind::kSettings, 0, 2).device(31);
    const ReplayScript script = make_script(events.timeline, 0);
    CHECK(script.first_settings == "max_split_size_mb:64");
    CHECK(script.settings == std::vector<std::string>{"max_split_size_mb:128"});
}

TEST_CASE("map calls before and after a checkpoint are not merged") {
    Events events;
    const std::uint64_t page = 20 << 20;
    events.page(0x10000000, page, 1);
    events.add(EventKind::kCheckpointBegin);
    events.page(0x10000000, page, 1);
    events.add(EventKind::kCheckpointEnd);
    events.page(0x10000000 + page, page, 2);
    events.page(0x10000000 + 2 * page, page, 3);
    events.timeline.checkpoints = {{2, 5}};
    for (std::size_t i = 0; i < events.timeline.events.size(); ++i) {
        events.timeline.events.set_device(i, 0);
    }
    const std::vector<RecordedSegmentCall> calls = recorded_segments(events.timeline, 0);
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].size_bytes == page);
    CHECK(calls[1].size_bytes == 2 * page);
}

TEST_CASE("a map that fills its reservation is a whole segment, others are pages") {
    Events events;
    const std::uint64_t size = 4 << 20;
    const DeviceAddress at = 0x10000000;
    const auto reserve = [&](std::uint64_t bytes) {
        events.add(EventKind::kAddressReserve, at, bytes, 0, kFlagFromAllocator).device(31);
    };
    const auto map = [&](std::uint32_t handle) {
        events.add(EventKind::kPhysicalCreate, handle, size, 0, kFlagFromAllocator);
        events.add(EventKind::kMap, at, size, handle, kFlagFromAllocator);
        return recorded_segments(events.timeline, 0).back().kind;
    };
    reserve(size);
    CHECK(map(1) == DriverCall::Kind::kSegmentAlloc);
    events.add(EventKind::kAddressFree, at, size).device(31);
    CHECK(map(2) == DriverCall::Kind::kMap);
    reserve(2 * size);
    CHECK(map(3) == DriverCall::Kind::kMap);
}

TEST_CASE("in a checkpoint the ranges of one reservation are one segment") {
    Events events;
    events.add(EventKind::kCheckpointBegin);
    events.add(EventKind::kCheckpointEnd);
    events.block(0x90000000 + 512, 512, 512);
    events.timeline.checkpoints = {{0, 1}};
    ReplayScript script;
    script.checkpoints.resize(1);
    for (const DeviceAddress address : {0x10000000u, 0x20000000u}) {
        HeapSegment range{.address = address, .size_bytes = 20 << 20, .expandable = true};
        range.reservation = 0x10000000;
        range.reservation_bytes = 0x40000000;
        script.checkpoints[0].segments.push_back(range);
    }
    script.checkpoints[0].segments.push_back({.address = 0x90000000, .size_bytes = 20 << 20});
    RecordedPlacements placements(events.timeline, script);
    const auto placed = placements.of(2);
    REQUIRE(placed.has_value());
    CHECK(placed->segment == 1);
    CHECK(placed->offset_bytes == 512);
}

TEST_CASE("a divergence names a free block that the recorded run did not use") {
    PoolDriver driver;
    driver.allocate("A", mib(12));  // segment 0
    driver.allocate("B", mib(30));  // segment 1
    driver.release("A");
    driver.release("B");
    const auto why = [&driver](std::uint32_t replayed, std::uint32_t recorded) {
        return divergence_cause(driver.pool, {replayed, 0, mib(2)}, recorded, 0);
    };
    CHECK(why(0, 1).find("did not use the free block of 12 MiB") != std::string::npos);
    CHECK(why(1, 0).find("used a free block of 12 MiB, smaller") != std::string::npos);
    CHECK(why(0, 2).find("no such segment") != std::string::npos);
}

TEST_CASE("a recorded cudaMalloc that the replay does not need is reported") {
    Events events;
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 4 << 20, 4 << 20);
    events.segment(0x40000000, 20 << 20);
    const ReplayScript script = make_script(events.timeline, 0);
    auto device = std::make_unique<RecordedDevice>(kGiB, kGiB);
    RecordedDevice& recorded = *device;
    const auto pool = make_pool("pytorch", "", std::move(device), script.streams, script.rules);
    REQUIRE(pool.ok());
    const Fidelity fidelity = measure_fidelity(events.timeline, script, **pool, recorded, nullptr);
    CHECK(fidelity.segments == 2);
    CHECK(fidelity.reason.find("the recorded run requests 20 MiB from the driver") !=
          std::string::npos);
}

TEST_CASE("pending blocks count towards the peak") {
    ReplayScript script;
    script.streams = {0, 64};
    script.pending = {{.id = 1, .stream = 1}};
    script.steps.push_back({.event = 0, .block = 0, .value = 30 << 20});
    script.steps.push_back(
        {.kind = Step::Kind::kRelease, .event = 1, .block = 0, .pending_count = 1});
    script.steps.push_back({.event = 2, .block = 2, .value = 40 << 20});
    PoolDriver driver;
    const ReplayResult result = replay(script, driver.pool);
    CHECK(result.peak_event == 2);
    CHECK(result.waste_at_peak.reserved == mib(70));
    CHECK(result.waste_at_peak.pending == mib(30));
    CHECK(result.waste_at_peak.inactive_split == 0);
}

TEST_CASE("a block of a rewound pool keeps its earlier request and stream") {
    Events events;
    events.timeline.streams = {0, 64, 128, 192};
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 1000, 1024, 3);
    events.timeline.event_pools.add(1, 9);
    events.add(EventKind::kPoolRewind);
    events.timeline.event_pools.add(2, 9);
    events.add(EventKind::kBlockAlloc, 0x10000000, kUnknown64, 1024);
    events.timeline.event_pools.add(3, 9);
    const ReplayScript script = make_script(events.timeline, 0);
    const Step placed = script.steps[script.steps.size() - 1];
    REQUIRE(placed.kind == Step::Kind::kPlace);
    CHECK(placed.placed_as == 1);
    CHECK(placed.stream == 3);
    CHECK(placed.value == 1000);
}

TEST_CASE("memory past the pool ends at a checkpoint that does not list it") {
    Events events;
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 512, 512);
    events.add(EventKind::kDeviceAlloc, 0x90000000, 5 << 20, 0, kFlagPastPool);
    events.add(EventKind::kCheckpointBegin);
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 512, 512);
    events.add(EventKind::kCheckpointEnd);
    events.timeline.checkpoints = {{3, 6}};
    const ReplayScript script = make_script(events.timeline, 0);
    std::vector<std::pair<Step::Kind, EventIndex>> found;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kPastPool || step.kind == Step::Kind::kPastPoolFree) {
            found.emplace_back(step.kind, step.event);
        }
    }
    CHECK(found == std::vector<std::pair<Step::Kind, EventIndex>>{{Step::Kind::kPastPool, 2},
                                                                  {Step::Kind::kPastPoolFree, 3}});
}

namespace {

// A segment of 12 MiB with an address reservation of its own, and its block; event 3 is the block.
Events with_own_segment(DeviceAddress address) {
    Events events;
    events.add(EventKind::kAddressReserve, address, mib(12), 0, kFlagFromAllocator);
    events.add(EventKind::kPhysicalCreate, 0x61, mib(12), 0, kFlagFromAllocator);
    events.add(EventKind::kMap, address, mib(12), 0x61, kFlagFromAllocator);
    events.block(address, mib(12), mib(12));
    return events;
}

std::vector<std::pair<Step::Kind, EventIndex>> steps_of_unmapped(const Events& events) {
    const ReplayScript script = make_script(events.timeline, 0);
    std::vector<std::pair<Step::Kind, EventIndex>> found;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind >= Step::Kind::kSegmentUnmapped) {
            found.emplace_back(step.kind, step.event);
        }
    }
    return found;
}

ReplayResult replayed(const Events& events, std::uint64_t capacity_bytes) {
    const auto pool = make_pool(
        "pytorch", "", std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, mib(2)));
    REQUIRE(pool.ok());
    return replay(make_script(events.timeline, 0), **pool);
}

}  // namespace

TEST_CASE("an unmapped segment counts for the private pool of its first block") {
    constexpr DeviceAddress kSegment = 0x10000000;
    Events events = with_own_segment(kSegment);
    events.add(EventKind::kBlockFree, kSegment, mib(12));
    events.block(kSegment, mib(6), mib(6));
    events.timeline.event_pools.add(3, 5);
    events.timeline.event_pools.add(5, 6);
    events.add(EventKind::kUnmap, kSegment, mib(12));
    events.segment(0x20000000, mib(2));
    const ReplayScript script = make_script(events.timeline, 0);
    CHECK(unmapped_before(script, 7) == std::map<std::uint32_t, std::uint64_t>{{5, mib(12)}});
}

TEST_CASE("memory that a library maps, unmaps and maps again is not a segment") {
    constexpr DeviceAddress kRange = 0x10000000;
    Events events;
    events.segment(0x20000000, mib(2));
    events.block(0x20000000, mib(2), mib(2));
    events.add(EventKind::kAddressReserve, kRange, mib(12));
    events.add(EventKind::kMap, kRange, mib(12), 0x61);
    events.add(EventKind::kUnmap, kRange, mib(12));
    events.segment(0x30000000, mib(2));
    events.add(EventKind::kMap, kRange, mib(12), 0x61);
    CHECK(steps_of_unmapped(events).empty());
}

TEST_CASE("a segment that the program unmaps leaves room for others until it is mapped again") {
    constexpr DeviceAddress kSegment = 0x10000000;
    constexpr DeviceAddress kOther = 0x20000000;
    using Steps = std::vector<std::pair<Step::Kind, EventIndex>>;
    Events events = with_own_segment(kSegment);
    events.add(EventKind::kUnmap, kSegment, mib(12));  // 4
    events.add(EventKind::kPhysicalRelease, 0x61);
    SECTION("it is mapped again") {
        events.segment(kOther, mib(40));  // 6
        events.block(kOther, mib(40), mib(40));
        events.add(EventKind::kBlockFree, kOther, mib(40));
        events.add(EventKind::kEmptyCache);  // 9
        events.add(EventKind::kDeviceFree, kOther, 0, 0, kFlagFromAllocator);
        events.add(EventKind::kPhysicalCreate, 0x62, mib(12));
        events.add(EventKind::kMap, kSegment, mib(12), 0x62);  // 12
        CHECK(steps_of_unmapped(events) ==
              Steps{{Step::Kind::kSegmentUnmapped, 4}, {Step::Kind::kSegmentMapped, 12}});
        events.timeline.partner[8] = 7;
        CHECK(replayed(events, mib(52)).ooms() == 0);
        CHECK(replayed(events, mib(40)).ooms() == 0);
        CHECK(replayed(events, mib(38)).ooms() == 1);
        const ReplayScript script = make_script(events.timeline, 0);
        CHECK(unmapped_before(script, 4).empty());
        CHECK(unmapped_before(script, 12) == std::map<std::uint32_t, std::uint64_t>{{0, mib(12)}});
        CHECK(unmapped_before(script, 13).empty());
    }
    SECTION("when it is mapped again, too little memory is free") {
        events.segment(kOther, mib(40));
        events.block(kOther, mib(40), mib(40));
        events.add(EventKind::kMap, kSegment, mib(12), 0x62);
        CHECK(replayed(events, mib(52)).libraries_failed == 0);
        CHECK(replayed(events, mib(45)).libraries_failed == 1);
    }
    SECTION("in a replay the pool never got it") {
        events.block(kOther, mib(10), mib(10));
        CHECK(replayed(events, mib(12)).ooms() == 0);
        CHECK(replayed(events, mib(8)).ooms() == 2);
    }
    SECTION("the allocator frees a segment: it unmaps it first") {
        events.add(EventKind::kAddressFree, kSegment, mib(12));
        events.segment(kOther, mib(40));
        CHECK(steps_of_unmapped(events).empty());
    }
    SECTION("the pool releases it while it is unmapped") {
        events.segment(kOther, mib(40));
        events.add(EventKind::kAddressFree, kSegment, mib(12));  // 7
        CHECK(steps_of_unmapped(events) ==
              Steps{{Step::Kind::kSegmentUnmapped, 4}, {Step::Kind::kUnmappedSegmentEnd, 7}});
    }
    SECTION("a checkpoint lists the state again") {
        events.segment(kOther, mib(40));
        events.add(EventKind::kCheckpointBegin);  // 7
        events.add(EventKind::kCheckpointEnd);
        events.timeline.checkpoints = {{7, 8}};
        CHECK(steps_of_unmapped(events) ==
              Steps{{Step::Kind::kSegmentUnmapped, 4}, {Step::Kind::kUnmappedSegmentEnd, 7}});
    }
}
