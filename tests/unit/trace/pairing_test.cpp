// Pairs allocations with their frees.
#include "analyzer/trace/pairing.h"

#include "analyzer/model/pair_map.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

struct Sequence {
    Timeline timeline;

    EventIndex add(EventKind kind,
                   DeviceAddress address,
                   std::uint64_t size_bytes = 0,
                   unsigned device = 0,
                   std::uint64_t extra = 0) {
        Event event = {};
        event.extra = extra;
        event.kind = kind;
        event.address = address;
        event.size_bytes = size_bytes;
        event.device = device & 31u;
        timeline.events.push_back(event);
        return static_cast<EventIndex>(timeline.events.size() - 1);
    }

    void check_pair(EventIndex alloc, EventIndex free) const {
        CHECK(timeline.partner[alloc] == free);
        CHECK(timeline.partner[free] == alloc);
    }
};

}  // namespace

TEST_CASE("all kinds of events pair, each within its layer and device", "[pairing]") {
    Sequence events;
    const auto device = events.add(EventKind::kDeviceAlloc, 0x1000, 512);
    const auto block = events.add(EventKind::kBlockAlloc, 0x1000, 512);
    const auto elsewhere = events.add(EventKind::kBlockAlloc, 0x1000, 512, 1);
    const auto reserve = events.add(EventKind::kAddressReserve, 0x1000, 512);
    const auto create = events.add(EventKind::kPhysicalCreate, 0x1000, 512);
    const auto release = events.add(EventKind::kPhysicalRelease, 0x1000);
    const auto address_free = events.add(EventKind::kAddressFree, 0x1000, 512);
    const auto free_elsewhere = events.add(EventKind::kBlockFree, 0x1000, 0, 1);
    const auto free = events.add(EventKind::kBlockFree, 0x1000);
    const auto device_free = events.add(EventKind::kDeviceFree, 0x1000);
    pair_events(&events.timeline);
    events.check_pair(device, device_free);
    events.check_pair(block, free);
    events.check_pair(elsewhere, free_elsewhere);
    events.check_pair(reserve, address_free);
    events.check_pair(create, release);
    CHECK(events.timeline.damage.frees_without_alloc == 0);
}

TEST_CASE("an unmap ends all maps in its range", "[pairing]") {
    Sequence events;
    const auto first = events.add(EventKind::kMap, 0x1000, 0x1000);
    const auto second = events.add(EventKind::kMap, 0x2000, 0x1000);
    const auto third = events.add(EventKind::kMap, 0x3000, 0x1000);
    const auto unmap = events.add(EventKind::kUnmap, 0x1000, 0x2000);
    pair_events(&events.timeline);
    events.check_pair(first, unmap);
    CHECK(events.timeline.partner[second] == unmap);
    CHECK(events.timeline.partner[third] == kNoEvent);
}

TEST_CASE("a free without a device gets the device of its allocation", "[pairing]") {
    Sequence events;
    const auto alloc = events.add(EventKind::kDeviceAlloc, 0x1000, 512, 3);
    const auto free = events.add(EventKind::kDeviceFree, 0x1000, 0, kMaxDevices);
    pair_events(&events.timeline);
    events.check_pair(alloc, free);
    CHECK(events.timeline.events[free].device == 3);
}

TEST_CASE("mismatches are counted and named", "[pairing]") {
    Sequence events;
    const auto first = events.add(EventKind::kBlockAlloc, 0x1000, 512);
    const auto second = events.add(EventKind::kBlockAlloc, 0x1000, 512);
    const auto free = events.add(EventKind::kBlockFree, 0x1000);
    events.add(EventKind::kBlockFree, 0x1000);
    events.add(EventKind::kDeviceFree, 0);  // cudaFree(nullptr) is allowed
    pair_events(&events.timeline);
    CHECK(events.timeline.partner[first] == kNoEvent);
    events.check_pair(second, free);
    CHECK(events.timeline.damage.allocs_over_live == 1);
    CHECK(events.timeline.damage.frees_without_alloc == 1);
    CHECK(events.timeline.damage.notes.size() == 2);
}

TEST_CASE("an allocation over memory of a destroyed context is no overlap", "[pairing]") {
    for (const bool before : {true, false}) {
        CAPTURE(before);
        Sequence events;
        events.add(EventKind::kContextCreate, 0x11);
        events.add(EventKind::kContextCreate, 0x22);
        const auto first = before ? events.add(EventKind::kDeviceAlloc, 0x1000, 512) : kNoEvent;
        const auto destroyed = events.add(EventKind::kContextDestroy, 0x11);
        if (!before) {
            events.add(EventKind::kDeviceAlloc, 0x1000, 512);
        }
        events.add(EventKind::kDeviceAlloc, 0x1000, 512);
        pair_events(&events.timeline);
        CHECK(events.timeline.damage.allocs_over_live == (before ? 0 : 1));
        if (before) {
            CHECK(events.timeline.partner[first] == destroyed);
        }
    }
}

TEST_CASE("a rewind ends only the blocks of its own pool", "[pairing]") {
    Sequence events;
    const auto other = events.add(EventKind::kBlockAlloc, 0x1000, 512);
    const auto first = events.add(EventKind::kBlockAlloc, 0x2000, 512);
    const auto freed = events.add(EventKind::kBlockAlloc, 0x3000, 512);
    const auto free = events.add(EventKind::kBlockFree, 0x3000);
    const auto rewind = events.add(EventKind::kPoolRewind, 0);
    const auto again = events.add(EventKind::kBlockAlloc, 0x2000, 512);
    const auto last = events.add(EventKind::kBlockFree, 0x2000);
    for (const auto event : {first, freed, rewind, again}) {
        events.timeline.event_pools.add(event, 5);
    }
    pair_events(&events.timeline);
    CHECK(events.timeline.partner[other] == kNoEvent);
    CHECK(events.timeline.partner[first] == rewind);
    CHECK(events.timeline.partner[rewind] == kNoEvent);
    events.check_pair(freed, free);
    events.check_pair(again, last);
    CHECK(events.timeline.damage.allocs_over_live == 0);
    CHECK(events.timeline.damage.frees_without_alloc == 0);
}

TEST_CASE("physical memory ends with its last release or its last unmap", "[pairing]") {
    Sequence events;
    const auto released = events.add(EventKind::kPhysicalCreate, 0xa, 4096);
    const auto mapped = events.add(EventKind::kPhysicalCreate, 0xb, 4096);
    const auto map = events.add(EventKind::kMap, 0x1000, 4096, 31, 0xb);
    const auto again = events.add(EventKind::kMap, 0x2000, 4096, 31, 0xb);
    events.add(EventKind::kPhysicalRetain, 0xa);
    const auto first_release = events.add(EventKind::kPhysicalRelease, 0xa);
    const auto last_release = events.add(EventKind::kPhysicalRelease, 0xa);
    const auto release = events.add(EventKind::kPhysicalRelease, 0xb);
    const auto reused = events.add(EventKind::kPhysicalCreate, 0xb, 8192);
    const auto unmap = events.add(EventKind::kUnmap, 0x1000, 4096, 31);
    const auto last_unmap = events.add(EventKind::kUnmap, 0x2000, 4096, 31);
    pair_events(&events.timeline);
    events.check_pair(released, last_release);
    CHECK(events.timeline.partner[first_release] == kNoEvent);
    events.check_pair(map, unmap);
    events.check_pair(again, last_unmap);
    CHECK(events.timeline.partner[release] == mapped);
    CHECK(events.timeline.partner[mapped] == last_unmap);
    CHECK(events.timeline.partner[reused] == kNoEvent);
    CHECK(events.timeline.damage.allocs_over_live == 0);
    CHECK(events.timeline.damage.frees_without_alloc == 0);
}

TEST_CASE("memory reserved by launched graphs counts until its next change", "[pairing]") {
    Sequence events;
    const auto first = events.add(EventKind::kGraphMemory, 0, 512, 0, 4096);
    const auto elsewhere = events.add(EventKind::kGraphMemory, 0, 512, 1, 4096);
    const auto unknown = events.add(EventKind::kGraphMemory, 0, 512, 0, kUnknown64);
    const auto second = events.add(EventKind::kGraphMemory, 0, 512, 0, 8192);
    const auto reset = events.add(EventKind::kDeviceReset, 0, 0, 0);
    pair_events(&events.timeline);
    CHECK(events.timeline.partner[first] == second);
    CHECK(events.timeline.partner[second] == reset);
    CHECK(events.timeline.partner[elsewhere] == kNoEvent);
    CHECK(events.timeline.partner[unknown] == kNoEvent);
}

TEST_CASE("a device reset ends everything of its device", "[pairing]") {
    Sequence events;
    const auto gone = events.add(EventKind::kDeviceAlloc, 0x1000, 512, 0);
    const auto stays = events.add(EventKind::kDeviceAlloc, 0x2000, 512, 1);
    const auto physical = events.add(EventKind::kPhysicalCreate, 0xa, 4096, 0);
    const auto map = events.add(EventKind::kMap, 0x4000, 4096, 31, 0xa);
    const auto reset = events.add(EventKind::kDeviceReset, 0, 0, 0);
    const auto after = events.add(EventKind::kDeviceAlloc, 0x1000, 512, 0);
    events.add(EventKind::kPhysicalCreate, 0xa, 4096, 0);
    events.add(EventKind::kMap, 0x4000, 4096, 31, 0xa);
    const auto free = events.add(EventKind::kDeviceFree, 0x2000, 0, 1);
    pair_events(&events.timeline);
    for (const auto ended : {gone, physical, map}) {
        CHECK(events.timeline.partner[ended] == reset);
    }
    CHECK(events.timeline.partner[after] == kNoEvent);
    CHECK(events.timeline.partner[reset] == kNoEvent);
    CHECK(events.timeline.damage.allocs_over_live == 0);
    events.check_pair(stays, free);
}

TEST_CASE("the pair map behaves like an ordered map", "[pairing]") {
    PairMap map;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> model;
    std::mt19937 random(7);
    for (std::uint32_t step = 0; step < 20000; ++step) {
        const std::uint64_t major = random() % 300 * 512;
        const auto minor = static_cast<std::uint32_t>(random() % 3);
        const auto known = model.find({major, minor});
        const std::uint32_t expected = known == model.end() ? PairMap::kAbsent : known->second;
        REQUIRE(map.find(major, minor) == expected);
        if (random() % 2 == 0) {
            REQUIRE(map.set(major, minor, step) == expected);
            model[{major, minor}] = step;
        } else {
            REQUIRE(map.take(major, minor) == expected);
            model.erase({major, minor});
        }
        REQUIRE(map.size() == model.size());
    }
}
