// The live table keeps the blocks of the program's own pools.
#include "live_table_model.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <utility>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::preload;

TEST_CASE("blocks of the program's pools are kept by address and pool, with their labels") {
    LiveTable table;
    REQUIRE(table.create());
    uint64_t sequence = 0;
    const auto apply = [&](Kind kind, uint64_t address, uint32_t pool, uint64_t size = 0) {
        EventRecord event{};
        event.sequence = ++sequence;
        event.kind = kind;
        event.address = address;
        event.size = size;
        event.extra = 512;
        event.pool = pool;
        event.device = kDeviceUnknown;
        table.apply(event);
    };
    apply(Kind::kProgramBlockAlloc, 0x1000, 2);
    apply(Kind::kProgramBlockAlloc, 0x1000, 3);  // a pool inside the other one
    apply(Kind::kProgramBlockAlloc, 0x2000, 3);
    apply(Kind::kBlockLabel, 0x1000, 3, 7);
    apply(Kind::kBlockLabel, 0x1000, 0, 8);  // a block of the framework: there is none
    EventRecord reset{};
    reset.kind = Kind::kDeviceReset;
    table.apply(reset);  // the pools free their blocks later
    std::vector<EventRecord> events = copy_of(table);
    REQUIRE(events.size() == 4);
    CHECK(events[0].pool == 2);
    CHECK(events[1].pool == 3);
    CHECK(events[2].kind == Kind::kBlockLabel);
    CHECK(events[2].pool == 3);
    CHECK(events[2].size == 7);
    apply(Kind::kProgramBlockFree, 0x1000, 2);
    apply(Kind::kProgramBlockFree, 0x2000, 2);  // not a block of this pool
    CHECK(copy_of(table).size() == 3);
    apply(Kind::kProgramPoolEnd, 0, 3);
    CHECK(copy_of(table).empty());
    table.abandon();
}

namespace {

EventRecord program_event(Kind kind, uint64_t sequence, uint32_t pool, uint64_t address = 0) {
    EventRecord event{};
    event.sequence = sequence;
    event.kind = kind;
    event.address = address;
    event.extra = 512;
    event.pool = pool;
    event.device = kDeviceUnknown;
    return event;
}

}  // namespace

TEST_CASE("after any blocks and ends of pools the live table equals a plain map") {
    LiveTable table;
    REQUIRE(table.create());
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> model;  // sequence by pool and address
    std::mt19937 random(7);
    const auto below = [&random](uint32_t end) { return static_cast<uint32_t>(random() % end); };
    for (uint64_t sequence = 1; sequence <= 60000; ++sequence) {
        const uint32_t pool = 1 + below(4);
        const uint64_t address = uint64_t{1 + below(3000)} << 12;
        const uint32_t what = below(2000);
        if (what == 0) {
            table.apply(program_event(Kind::kProgramPoolEnd, sequence, pool));
            std::erase_if(model, [pool](const auto& entry) { return entry.first.first == pool; });
        } else if (what < 500) {
            table.apply(program_event(Kind::kProgramBlockFree, sequence, pool, address));
            model.erase({pool, address});
        } else {
            table.apply(program_event(Kind::kProgramBlockAlloc, sequence, pool, address));
            model[{pool, address}] = sequence;
        }
        if (sequence % 1000 == 0 || what == 0) {
            const std::vector<EventRecord> events = copy_of(table);
            REQUIRE(events.size() == model.size());
            for (const EventRecord& event : events) {
                const auto known = model.find({event.pool, event.address});
                REQUIRE(known != model.end());
                REQUIRE(known->second == event.sequence);
            }
        }
    }
    table.abandon();
}

TEST_CASE("the blocks of ended pools do not let the live table grow") {
    LiveTable table;
    REQUIRE(table.create());
    uint64_t sequence = 0;
    for (uint64_t block = 0; block < 1000; ++block) {
        table.apply(program_event(Kind::kProgramBlockAlloc, ++sequence, 2, (block + 1) << 12));
    }
    for (uint64_t round = 0; round < 1000; ++round) {
        for (uint64_t block = 0; block < 100; ++block) {
            const uint64_t address = (uint64_t{1} << 40) + ((round * 100 + block) << 12);
            table.apply(program_event(Kind::kProgramBlockAlloc, ++sequence, 3, address));
        }
        table.apply(program_event(Kind::kProgramPoolEnd, ++sequence, 3));
    }
    CHECK(copy_of(table).size() == 1000);
    CHECK(table.size_bytes() < 1 << 20);
    CHECK(table.lost() == 0);
    table.abandon();
}

TEST_CASE("a label does not reach a block whose pool has ended") {
    LiveTable table;
    REQUIRE(table.create());
    table.apply(program_event(Kind::kProgramBlockAlloc, 1, 2, 4096));
    table.apply(program_event(Kind::kProgramPoolEnd, 2, 2));
    EventRecord label = program_event(Kind::kBlockLabel, 3, 2, 4096);
    label.size = 7;
    table.apply(label);
    table.apply(program_event(Kind::kProgramBlockAlloc, 4, 2, 4096));  // without a label
    CHECK(copy_of(table).size() == 1);
    table.abandon();
}
