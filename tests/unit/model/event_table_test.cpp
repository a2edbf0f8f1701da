#include "analyzer/model/event_table.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

void require_equal(const Event& kept, const Event& given) {
    REQUIRE(kept.time_ns == given.time_ns);
    REQUIRE(kept.address == given.address);
    REQUIRE(kept.size_bytes == given.size_bytes);
    REQUIRE(kept.extra == given.extra);
    REQUIRE(kept.origin == given.origin);
    REQUIRE(kept.stream == given.stream);
    REQUIRE(kept.device == given.device);
    REQUIRE(kept.flags == given.flags);
    REQUIRE(kept.kind == given.kind);
}

// Random values of every size, also at the limits of the short encodings.
std::uint64_t any_value(std::mt19937_64* random) {
    const std::uint64_t value = (*random)() >> ((*random)() % 64);
    const std::uint64_t edge = std::uint64_t{1} << ((*random)() % 64);
    switch ((*random)() % 6) {
        case 0:
            return 0;
        case 1:
            return edge - 1;
        case 2:
            return edge;
        case 3:
            return kUnknown64;
        case 4:
            return value & ~(kBlockUnitBytes - 1);
        default:
            return value;
    }
}

Event any_event(std::mt19937_64* random) {
    Event event = {};
    event.time_ns = any_value(random);
    event.address = any_value(random);
    event.size_bytes = any_value(random);
    event.extra = any_value(random);
    event.origin = static_cast<OriginId>((*random)());
    event.stream = static_cast<StreamId>((*random)());
    event.device = (*random)() & 31u;
    event.flags = (*random)() & 7u;
    event.kind = static_cast<EventKind>((*random)());
    return event;
}

}  // namespace

TEST_CASE("a table of events returns every event unchanged") {
    std::mt19937_64 random(3);
    std::vector<Event> given;
    EventTable table;
    for (int i = 0; i < 150'000; ++i) {
        given.push_back(any_event(&random));
        table.push_back(given.back());
    }
    for (int i = 0; i < 10'000; ++i) {
        const std::size_t at = random() % given.size();
        given[at] = any_event(&random);
        table.set(at, given[at]);
    }
    REQUIRE(table.size() == given.size());
    std::size_t at = 0;
    for (const Event& event : table) {
        require_equal(event, given[at]);
        REQUIRE(table.kind(at) == given[at].kind);
        REQUIRE(table.device(at) == given[at].device);
        REQUIRE(table.address(at) == given[at].address);
        ++at;
    }
    require_equal(table.front(), given.front());
    require_equal(table.back(), given.back());
}

TEST_CASE("setting the device of an event changes nothing else in it") {
    std::mt19937_64 random(4);
    EventTable table;
    for (int i = 0; i < 1000; ++i) {
        Event event = any_event(&random);
        table.push_back(event);
        event.device = 7;
        table.set_device(table.size() - 1, 7);
        require_equal(table.back(), event);
    }
}

TEST_CASE("addresses at the limits of the base's range and at zero are kept") {
    for (const std::uint64_t first :
         {std::uint64_t{0x7ffffffe00}, std::uint64_t{0x200}, std::uint64_t{0x7f0000000000}}) {
        EventTable table;
        const std::uint64_t addresses[] = {first,
                                           first + 512,
                                           first - 512,
                                           0,
                                           first + (1ull << 39),
                                           first - (1ull << 39),
                                           first + (1ull << 39) - 512};
        for (const std::uint64_t address : addresses) {
            Event event = {};
            event.address = address;
            table.push_back(event);
        }
        for (std::size_t i = 0; i < table.size(); ++i) {
            CHECK(table[i].address == addresses[i]);
        }
    }
}
