// The live table when frees are missing among the events: it keeps what is live, and it does not
// grow without end.
#include "live/live_table.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

using namespace fragtrace;
using preload::LiveTable;

namespace {

using Kind = EventKind;

EventRecord event_of(Kind kind, uint64_t sequence, uint64_t address, uint64_t size) {
    EventRecord event{};
    event.kind = kind;
    event.sequence = sequence;
    event.address = address;
    event.size = size;
    event.extra = size;
    return event;
}

std::set<uint64_t> held_by(const LiveTable& table) {
    std::vector<EventRecord> events(table.event_count());
    table.copy_to(events.data());
    std::set<uint64_t> sequences;
    for (const EventRecord& event : events) {
        sequences.insert(event.sequence);
    }
    return sequences;
}

struct Memory {
    uint64_t size;
    uint64_t sequence;
};

// Allocates at random free addresses of a small address space, and frees.
class Program {
  public:
    explicit Program(uint32_t seed, uint64_t pages) : random_(seed), pages_(pages) {}

    // Returns an allocation or a free.
    EventRecord next() {
        for (;;) {
            const uint64_t at = below(pages_);
            const uint64_t size = 1 + below(16);
            const auto after = live.lower_bound(at);
            if (after != live.end() && (live.size() > pages_ / 20 || below(2) == 0)) {
                const EventRecord freed =
                    event_of(Kind::kDeviceFree, ++sequence_, address_of(after->first), 0);
                live.erase(after);
                return freed;
            }
            const bool fits = (after == live.end() || at + size <= after->first) &&
                              (after == live.begin() ||
                               std::prev(after)->first + std::prev(after)->second.size <= at);
            if (fits) {
                live[at] = {size, ++sequence_};
                return event_of(Kind::kDeviceAlloc, sequence_, address_of(at), size * 512);
            }
        }
    }

    std::map<uint64_t, Memory> live;  // by page

  private:
    static uint64_t address_of(uint64_t page) { return (uint64_t{1} << 40) + page * 512; }

    uint64_t below(uint64_t end) { return random_() % end; }

    std::mt19937_64 random_;
    uint64_t pages_;
    uint64_t sequence_ = 0;
};

}  // namespace

TEST_CASE("memory that overlaps a later allocation of its kind is dropped if frees may be lost") {
    for (const Kind kind : {Kind::kDeviceAlloc,
                            Kind::kManagedAlloc,
                            Kind::kAsyncAlloc,
                            Kind::kHostAlloc,
                            Kind::kMap,
                            Kind::kAddressReserve,
                            Kind::kBlockAlloc}) {
        INFO(static_cast<int>(kind));
        LiveTable table;
        REQUIRE(table.create());
        table.apply(event_of(kind, 1, 0x1000, 0x1000));
        table.apply(event_of(kind, 2, 0x2000, 0x1000));  // touches both neighbours
        table.apply(event_of(kind, 3, 0x3000, 0x3000));
        table.apply(event_of(kind, 4, 0x5800, 0x0800));  // the end of number 3
        table.apply(event_of(kind, 5, 0x8000, 0x1000));
        table.apply(event_of(kind, 6, 0x7000, 0x1800));  // the beginning of number 5
        table.apply(event_of(kind, 7, 0xa000, 0x4000));
        table.apply(event_of(kind, 8, 0xb000, 0x1000));  // inside number 7
        table.drop_overlapped();
        CHECK(held_by(table) == std::set<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
        table.expect_lost_frees();
        table.drop_overlapped();
        CHECK(held_by(table) == std::set<uint64_t>{1, 2, 4, 6, 8});
        table.abandon();
    }
}

TEST_CASE("different kinds of memory, and pools inside each other, may overlap") {
    LiveTable table;
    REQUIRE(table.create());
    table.expect_lost_frees();
    table.apply(event_of(Kind::kAddressReserve, 1, 0x10000, 0x10000));
    table.apply(event_of(Kind::kMap, 2, 0x10000, 0x8000));
    table.apply(event_of(Kind::kBlockAlloc, 3, 0x10000, 0x4000));
    table.apply(event_of(Kind::kProgramBlockAlloc, 4, 0x10000, 0x2000));
    table.apply(event_of(Kind::kProgramBlockAlloc, 5, 0x11000, 0x1000));
    table.apply(event_of(Kind::kPhysicalCreate, 6, 0x10000, 0x8000));
    table.apply(event_of(Kind::kArrayAlloc, 7, 0x11000, 0x8000));
    table.apply(event_of(Kind::kHostRegister, 8, 0x10000, 0x8000));
    table.apply(event_of(Kind::kHostRegister, 9, 0x11000, 0x8000));
    table.drop_overlapped();
    CHECK(held_by(table) == std::set<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
    table.abandon();
}

TEST_CASE("a waiting free is dropped with its block") {
    LiveTable table;
    REQUIRE(table.create());
    table.expect_lost_frees();
    table.apply(event_of(Kind::kBlockAlloc, 1, 0x1000, 0x1000));
    EventRecord freed = event_of(Kind::kBlockFree, 2, 0x1000, 0);
    freed.flags = kFlagPending;
    table.apply(freed);
    EventRecord wait = event_of(Kind::kPendingEvent, 3, 0x1000, 0);
    wait.extra = 77;
    table.apply(wait);
    CHECK(held_by(table) == std::set<uint64_t>{1, 2, 3});
    table.apply(event_of(Kind::kBlockAlloc, 4, 0x0800, 0x1000));
    table.drop_overlapped();
    CHECK(held_by(table) == std::set<uint64_t>{4});
    table.abandon();
}

TEST_CASE("with lost frees the table stays small and has every live allocation") {
    constexpr uint64_t kPages = 400'000;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
        LiveTable table;
        REQUIRE(table.create());
        table.expect_lost_frees();
        Program program(seed, kPages);
        std::mt19937 random(seed);
        for (int i = 0; i < 1'500'000; ++i) {
            const EventRecord event = program.next();
            if (event.kind == Kind::kDeviceAlloc || random() % 2 == 0) {
                table.apply(event);
            }
        }
        table.drop_overlapped();
        std::set<uint64_t> live;
        for (const auto& [page, memory] : program.live) {
            live.insert(memory.sequence);
        }
        const std::set<uint64_t> held = held_by(table);
        CHECK(std::includes(held.begin(), held.end(), live.begin(), live.end()));
        CHECK(held.size() <= 2 * kPages / 17);  // no two overlap, and a block has 8.5 pages
        CHECK(table.size_bytes() <= 10 << 20);  // an entry for each page takes 40 MiB
        table.abandon();
    }
}
