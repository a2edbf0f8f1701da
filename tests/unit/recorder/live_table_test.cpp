// Compares the live table with a model of plain maps: the live allocations after any sequence of
// events.
#include "live/live_table.h"

#include "live_table_model.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::preload;

TEST_CASE("after any events the live table equals a model of plain maps") {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
        LiveTable table;
        REQUIRE(table.create());
        Model model;
        Source source(seed);
        for (int i = 0; i < 4000; ++i) {
            const EventRecord event = source.next();
            table.fetch(event, event);
            table.apply(event);
            model.apply(event);
            if (i % 50 == 0 || event.kind == Kind::kDeviceReset ||
                event.kind == Kind::kPoolRewind) {
                INFO("seed " << seed << ", event " << event.sequence << ", kind "
                             << static_cast<int>(event.kind));
                const Held held = held_by(table);
                const Held expected = model.held();
                Held too_much, missing;
                std::set_difference(held.begin(),
                                    held.end(),
                                    expected.begin(),
                                    expected.end(),
                                    std::back_inserter(too_much));
                std::set_difference(expected.begin(),
                                    expected.end(),
                                    held.begin(),
                                    held.end(),
                                    std::back_inserter(missing));
                REQUIRE(too_much == Held{});
                REQUIRE(missing == Held{});
            }
        }
        CHECK(table.lost() == 0);
        table.abandon();
    }
}

TEST_CASE("a label directly follows its block, and a later label replaces it") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord block{};
    block.kind = Kind::kBlockAlloc;
    block.sequence = 1;
    block.address = 4096;
    block.size = block.extra = 512;
    block.native_stack = 7;
    block.thread = 3;
    table.apply(block);
    block.sequence = 2;
    block.address = 8192;
    table.apply(block);
    EventRecord label{};
    label.kind = Kind::kBlockLabel;
    label.address = 4096;
    label.device = kDeviceUnknown;
    for (label.sequence = 3; label.sequence <= 4; ++label.sequence) {
        label.size = label.sequence;
        table.apply(label);
    }
    label.address = 1 << 20;  // no block
    table.apply(label);
    const std::vector<EventRecord> copy = copy_of(table);
    REQUIRE(copy.size() == 3);
    CHECK(copy[0].kind == Kind::kBlockAlloc);
    CHECK(copy[1].kind == Kind::kBlockLabel);
    CHECK(copy[1].address == 4096);
    CHECK(copy[1].size == 4);
    CHECK(copy[1].extra == 0);
    CHECK(copy[1].native_stack == 0);
    CHECK(copy[1].device == 0);
    CHECK(copy[2].address == 8192);
    block.address = 4096;  // another block at the same place has no label
    block.sequence = 9;
    table.apply(block);
    CHECK(copy_of(table).size() == 2);
    table.abandon();
}

TEST_CASE("the report of free memory is updated and follows all live allocations") {
    for (uint32_t seed = 1; seed <= 10; ++seed) {
        LiveTable table;
        REQUIRE(table.create());
        Model model;
        Source source(seed);
        for (int i = 0; i < 2000; ++i) {
            EventRecord event = source.next();
            if (i == 0 || i % 97 == 0) {
                event = report_of(model, static_cast<uint16_t>(i % 2), event.sequence);
            }
            table.apply(event);
            model.apply(event);
            if (i % 20 != 0) {
                continue;
            }
            std::vector<EventRecord> copy = copy_of(table);
            const size_t reports = i < 97 ? 1 : 2;  // of both devices
            REQUIRE(copy.size() >= reports);
            for (const EventRecord& report : std::vector<EventRecord>(
                     copy.end() - static_cast<std::ptrdiff_t>(reports), copy.end())) {
                INFO("seed " << seed << ", event " << event.sequence);
                REQUIRE(report.kind == Kind::kMemoryInfo);
                REQUIRE(report.address == 0);
                REQUIRE(report.flags == kFlagByPool);
                REQUIRE(report.extra == kCardBytes);
                REQUIRE(report.size == report_of(model, report.device, 0).size);
            }
        }
        table.abandon();
    }
}

TEST_CASE("a memory report that overlaps another thread's call replaces no better report") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord report{};
    report.kind = Kind::kMemoryInfo;
    for (const auto& [size, flags, kept] : {std::tuple{1, kFlagUnsettled, 1},
                                            std::tuple{2, kFlagUnsettled, 2},
                                            std::tuple{3, kFlagByPool, 3},
                                            std::tuple{4, kFlagUnsettled, 3},
                                            std::tuple{5, kFlagByPool, 5}}) {
        report.size = static_cast<uint64_t>(size);
        report.flags = static_cast<uint8_t>(flags);
        table.apply(report);
        REQUIRE(copy_of(table).size() == 1);
        CHECK(copy_of(table)[0].size == static_cast<uint64_t>(kept));
    }
    table.abandon();
}

TEST_CASE("a million blocks are listed in order and disappear once they are freed") {
    constexpr uint64_t kBlocks = 1'000'000;
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    for (event.sequence = 1; event.sequence <= kBlocks; ++event.sequence) {
        event.kind = Kind::kBlockAlloc;
        event.address = event.sequence * 512;
        table.apply(event);
    }
    const std::vector<EventRecord> events = copy_of(table);
    REQUIRE(events.size() == kBlocks);
    CHECK(std::is_sorted(events.begin(), events.end(), [](const auto& a, const auto& b) {
        return a.sequence < b.sequence;
    }));
    CHECK(table.size_bytes() <= kBlocks * 110);
    for (uint64_t number = 1; number <= kBlocks; ++number) {
        event.kind = Kind::kBlockFree;
        event.address = number * 512;
        table.apply(event);
    }
    CHECK(table.event_count() == 0);
    CHECK(table.size_bytes() <= 1 << 20);
    table.abandon();
}

TEST_CASE("imported memory is retained and released like own memory") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    for (const Kind kind : {Kind::kImport, Kind::kPhysicalRetain, Kind::kPhysicalRelease}) {
        ++event.sequence;
        event.kind = kind;
        event.address = 7;
        table.apply(event);
        CHECK(table.event_count() == (kind == Kind::kPhysicalRetain ? 2 : 1));
    }
    table.apply(event);
    CHECK(table.event_count() == 0);
    table.abandon();
}

TEST_CASE("a segment's stream comes from its own first block") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    event.flags = kFlagFromAllocator;
    event.stream = kStreamUnknown;
    event.kind = Kind::kDeviceAlloc;
    event.size = 0x1000;
    for (const uint64_t address : {0x1000u, 0x5000u, 0x9000u}) {
        ++event.sequence;
        event.address = address;
        table.apply(event);
    }
    ++event.sequence;
    event.flags = 0;
    event.kind = Kind::kBlockAlloc;
    event.address = 0x5800;
    event.size = event.extra = 0x200;
    event.stream = 7;
    table.apply(event);
    const std::vector<EventRecord> copy = copy_of(table);
    REQUIRE(copy.size() == 4);
    CHECK(copy[0].stream == kStreamUnknown);
    CHECK(copy[1].stream == 7);
    CHECK(copy[2].stream == kStreamUnknown);
    table.abandon();
}
