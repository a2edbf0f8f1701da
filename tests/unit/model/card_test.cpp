// The memory of a card that a pool can use, from the driver's reports of free memory. It must be
// the same whenever a report was made.
#include "analyzer/support/units.h"
#include "tests/support/measured.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <vector>

using namespace fragtrace::analyzer;
using fragtrace::EventKind;
using fragtrace::kFlagByPool;
using fragtrace::kFlagFromAllocator;
using fragtrace::kFlagUnsettled;
using fragtrace::testing::Events;
using fragtrace::testing::measure_device;

namespace {

constexpr DeviceAddress kBase = 0x400000000000;
constexpr std::uint64_t kTotal = 1 << 20;  // MiB
constexpr std::uint64_t kContext = 300;

// A card with a context and one process. It reports free memory after each call.
class Card {
  public:
    Card() {
        events_.add(EventKind::kAddressReserve, kBase, kTotal * kMiB, 0, kFlagFromAllocator);
        tell();
    }

    void allocate(std::uint64_t address, std::uint64_t mib, bool pool) {
        events_.add(EventKind::kDeviceAlloc, address, mib * kMiB, 0, flags(pool));
        held_[pool] += mib;
        tell();
    }

    void free(std::uint64_t address, std::uint64_t mib, bool pool) {
        events_.add(EventKind::kDeviceFree, address, 0, 0, flags(pool));
        held_[pool] -= mib;
        tell();
    }

    void create(std::uint64_t handle, std::uint64_t mib, bool pool) {
        events_.add(EventKind::kPhysicalCreate, handle, mib * kMiB, 0, flags(pool));
        physical_[handle] = {mib, 1, pool};
        held_[pool] += mib;
        tell();
    }

    void retain(std::uint64_t handle) {
        events_.add(EventKind::kPhysicalRetain, handle);
        ++physical_[handle].holders;
        tell();
    }

    void release(std::uint64_t handle) {
        events_.add(EventKind::kPhysicalRelease, handle);
        end(handle);
    }

    void map(std::uint64_t address, std::uint64_t handle) {
        const Physical& physical = physical_[handle];
        events_.add(EventKind::kMap, address, physical.mib * kMiB, handle, flags(physical.of_pool));
        ++physical_[handle].holders;
        tell();
    }

    void unmap(std::uint64_t address, std::uint64_t handle) {
        events_.add(EventKind::kUnmap, address, physical_[handle].mib * kMiB);
        end(handle);
    }

    [[nodiscard]] const Timeline& timeline() const { return events_.timeline; }

  private:
    struct Physical {
        std::uint64_t mib = 0;
        std::uint64_t holders = 0;
        bool of_pool = false;
    };

    static unsigned flags(bool pool) { return pool ? unsigned{kFlagFromAllocator} : 0U; }

    void end(std::uint64_t handle) {
        Physical& physical = physical_[handle];
        if (--physical.holders == 0) {
            held_[physical.of_pool] -= physical.mib;
        }
        tell();
    }

    // Reports free memory and checks the metrics. The program's own memory outside the pool counts
    // as memory of others.
    void tell() {
        const std::uint64_t free = kTotal - kContext - held_[0] - held_[1];
        events_.add(EventKind::kMemoryInfo, 0, free * kMiB, kTotal * kMiB);
        const DeviceMetrics metrics = measure_device(events_.timeline, 0);
        REQUIRE(metrics.total_bytes == kTotal * kMiB);
        REQUIRE(metrics.context_and_others_bytes == (kContext + held_[0]) * kMiB);
        REQUIRE(metrics.capacity_bytes == (kTotal - kContext - held_[0]) * kMiB);
        REQUIRE(metrics.violations == 0);
    }

    Events events_;
    std::uint64_t held_[2] = {};  // MiB outside the pool, and MiB of the pool
    std::map<std::uint64_t, Physical> physical_;
};

}  // namespace

TEST_CASE("created pages that are not mapped yet belong to the pool", "[card]") {
    Card card;
    for (std::uint64_t handle = 1; handle <= 3; ++handle) {
        card.create(handle, 20, true);
    }
    card.map(kBase, 1);
    card.map(kBase + 20 * kMiB, 2);
    card.release(3);  // as after a refused next page
    card.unmap(kBase, 1);
    card.release(1);
}

TEST_CASE("a page counts once, for any number of mappings, until its last release", "[card]") {
    Card card;
    card.create(1, 20, true);
    card.map(kBase, 1);
    card.map(kBase + 100 * kMiB, 1);
    card.retain(1);
    card.release(1);
    card.release(1);
    card.unmap(kBase, 1);
    card.unmap(kBase + 100 * kMiB, 1);
}

TEST_CASE("the pool's capacity is the same after each call of a random program", "[card]") {
    for (unsigned seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        const auto below = [&random](std::size_t n) { return random() % n; };

        struct Mapped {
            DeviceAddress address;
            std::uint64_t handle;
        };

        struct Allocated {
            DeviceAddress address;
            std::uint64_t mib;
            bool pool;
        };

        std::vector<std::uint64_t> handles;  // one entry for each pending release
        std::vector<Mapped> mapped;
        std::vector<Allocated> allocated;
        const auto take = [&below](auto* from) {
            const std::size_t at = below(from->size());
            const auto taken = (*from)[at];
            from->erase(from->begin() + static_cast<std::ptrdiff_t>(at));
            return taken;
        };
        Card card;
        std::uint64_t next = 1;
        for (int call = 0; call < 60; ++call) {
            ++next;
            const DeviceAddress place = kBase + next * 4096 * kMiB;
            switch (below(7)) {
                case 0:
                    card.create(next, 2 + below(40), below(3) != 0);
                    handles.push_back(next);
                    break;
                case 1:
                    if (!handles.empty()) {
                        handles.push_back(handles[below(handles.size())]);
                        card.retain(handles.back());
                    }
                    break;
                case 2:
                    if (!handles.empty()) {
                        card.release(take(&handles));
                    }
                    break;
                case 3:
                    if (!handles.empty()) {
                        mapped.push_back({place, handles[below(handles.size())]});
                        card.map(place, mapped.back().handle);
                    }
                    break;
                case 4:
                    if (!mapped.empty()) {
                        const Mapped one = take(&mapped);
                        card.unmap(one.address, one.handle);
                    }
                    break;
                case 5:
                    allocated.push_back({place, 2 + below(40), below(3) != 0});
                    card.allocate(place, allocated.back().mib, allocated.back().pool);
                    break;
                default:
                    if (!allocated.empty()) {
                        const Allocated one = take(&allocated);
                        card.free(one.address, one.mib, one.pool);
                    }
                    break;
            }
        }
    }
}

TEST_CASE("memory mapped with an unknown handle belongs to the pool", "[card]") {
    Events events;
    events.add(EventKind::kAddressReserve, kBase, kTotal * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kMap, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kMap, kBase + 20 * kMiB, 20 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kMemoryInfo, 0, 60 * kMiB, 100 * kMiB);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 100 * kMiB);
    events.add(EventKind::kUnmap, kBase, 40 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 100 * kMiB, 100 * kMiB);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 100 * kMiB);
}

TEST_CASE("a report that overlaps another thread's call counts only without a better one",
          "[card]") {
    const auto flags = static_cast<unsigned>(kFlagByPool);
    const auto unsettled = static_cast<unsigned>(kFlagByPool | kFlagUnsettled);
    Events events;
    events.add(EventKind::kMemoryInfo, 0, 50 * kMiB, 100 * kMiB, unsettled);
    events.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 50 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 60 * kMiB, 100 * kMiB, flags);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 80 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 40 * kMiB, 100 * kMiB, unsettled);
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 80 * kMiB);
}

TEST_CASE("driver pages for memory past the pool do not count as memory of others", "[card]") {
    const unsigned past_pool = fragtrace::kFlagPastPool;
    Events events;
    events.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    events.add(EventKind::kMemoryInfo, 0, 60 * kMiB, 100 * kMiB);
    events.add(EventKind::kDeviceAlloc, kBase + 20 * kMiB, 1, 0, past_pool);
    events.add(EventKind::kMemoryInfo, 0, 58 * kMiB, 100 * kMiB);  // one page of the driver
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 80 * kMiB);
    events.add(EventKind::kDeviceFree, kBase + 20 * kMiB);
    events.add(EventKind::kMemoryInfo, 0, 50 * kMiB, 100 * kMiB);  // others use 10 MiB more
    CHECK(measure_device(events.timeline, 0).capacity_bytes == 70 * kMiB);
}

TEST_CASE("room that other processes had by an earlier report is not taken for granted", "[card]") {
    Events events;
    events.segment(kBase, 20 * kMiB);
    events.block(kBase, 512, 512);
    events.add(EventKind::kMemoryInfo, 0, 10 * kMiB, 100 * kMiB);  // others use 70 MiB
    CHECK(measure_device(events.timeline, 0).beside_pool.excess_bytes == 0);
    events.add(EventKind::kMemoryInfo, 0, 5 * kMiB, 100 * kMiB);  // 75 MiB
    CHECK(measure_device(events.timeline, 0).beside_pool.excess_bytes == 0);
    events.add(EventKind::kMemoryInfo, 0, 12 * kMiB, 100 * kMiB);  // 68 MiB: too little to count
    CHECK(measure_device(events.timeline, 0).beside_pool.excess_bytes == 0);
    events.add(EventKind::kMemoryInfo, 0, 55 * kMiB, 100 * kMiB);  // 25 MiB
    CHECK(measure_device(events.timeline, 0).beside_pool.excess_bytes == 50 * kMiB);
}

TEST_CASE("changes of memory outside the pool are relative to the last report", "[card]") {
    Events events;
    const auto tell = [&events] {
        events.add(EventKind::kMemoryInfo, 0, 10 * kMiB, 100 * kMiB);
        return measure_device(events.timeline, 0).beside_pool;
    };
    events.add(EventKind::kDeviceAlloc, kBase + 500 * kMiB, 30 * kMiB);  // before the pool: 0
    events.segment(kBase, 20 * kMiB);                                    // 1
    events.block(kBase, 512, 512);                                       // 2
    BesidePool beside = tell();                                          // 3
    CHECK(beside.from == 0);
    CHECK(beside.until == fragtrace::analyzer::kNoEvent);
    CHECK(beside.excess_bytes == 0);
    events.add(EventKind::kDeviceAlloc, kBase + 600 * kMiB, 40 * kMiB);  // 4
    beside = measure_device(events.timeline, 0).beside_pool;
    CHECK(beside.until == 4);
    CHECK(beside.excess_bytes == 40 * kMiB);
    events.add(EventKind::kDeviceFree, kBase + 600 * kMiB);  // 5
    beside = tell();
    CHECK(beside.from == 5);
    CHECK(beside.until == fragtrace::analyzer::kNoEvent);
    CHECK(beside.excess_bytes == 40 * kMiB);
    // Memory that PyTorch allocates past its pool does not belong to a library.
    events.add(EventKind::kDeviceAlloc, kBase + 700 * kMiB, 90 * kMiB, 0, fragtrace::kFlagPastPool);
    beside = measure_device(events.timeline, 0).beside_pool;
    CHECK(beside.until == fragtrace::analyzer::kNoEvent);
    CHECK(beside.excess_bytes == 40 * kMiB);
}
