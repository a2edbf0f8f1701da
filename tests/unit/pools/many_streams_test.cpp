// As many streams as a trace can have: their memory, and that one stream does not slow down the
// others. If a step looked at all streams, these tests would last for minutes.
#include "analyzer/pools/address_space.h"
#include "analyzer/pools/others/rmm_pool.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <malloc.h>
#include <numeric>
#include <random>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint32_t kManyStreams = kNoStream;

// Bytes that this process has from malloc. 0 if they cannot be counted (sanitizers).
std::uint64_t held_bytes() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

std::unique_ptr<Pool> make(const PoolDescription& description) {
    std::vector<std::uint64_t> handles(kManyStreams);
    std::iota(handles.begin(), handles.end(), 0);
    const std::uint64_t card_bytes = std::uint64_t{1} << 45;
    auto pool = make_pool(description.name,
                          "",
                          std::make_unique<FixedDevice>(card_bytes, card_bytes, 2 * kMiB),
                          std::move(handles));
    REQUIRE(pool.ok());
    return std::move(pool).value();
}

struct Run {
    std::unique_ptr<Pool> pool;
    std::vector<BlockId> live;
    BlockId next = 0;

    void allocate(std::uint32_t stream, std::uint64_t bytes) {
        const Outcome outcome = pool->allocate({.block = next,
                                                .requested_bytes = bytes,
                                                .stream = static_cast<StreamId>(stream)})
                                    .outcome;
        REQUIRE(outcome != Outcome::kOutOfMemory);
        pool->take_driver_calls();
        live.push_back(next++);
    }

    void release_all() {
        for (const BlockId block : live) {
            REQUIRE(pool->release(block, {}));
            pool->take_driver_calls();
        }
        live.clear();
    }
};

TEST_CASE("65535 streams need little memory in any pool and no step visits all of them") {
    for (const PoolDescription& description : known_pools()) {
        if (description.planned) {
            continue;
        }
        CAPTURE(description.name);
        const std::uint64_t before = held_bytes();
        Run run{.pool = make(description), .live = {}};
        for (const std::uint64_t bytes : {kKiB, 3 * kMiB}) {
            for (std::uint32_t stream = 0; stream < kManyStreams; ++stream) {
                run.allocate(stream, bytes);
            }
        }
        run.release_all();
        // Now each stream has at most two free blocks, in its own pools.
        if (before != 0) {
            CHECK((held_bytes() - before) / kManyStreams < 2 * kKiB);
        }
        for (std::uint32_t stream = kManyStreams; stream-- > 0;) {
            run.allocate(stream, 5 * kMiB);  // larger than any free block
            if (stream % 8 == 0) {
                run.pool->empty_cache();
            }
        }
        run.release_all();
        run.pool->empty_cache();
        CHECK(run.pool->statistics().requested.current == 0);
    }
}

// The same rule, implemented in the simplest way.
struct PlainAddresses {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // ascending

    [[nodiscard]] bool free(std::uint64_t begin, std::uint64_t end) const {
        return std::none_of(taken.begin(), taken.end(), [&](const auto& range) {
            return range.first < end && begin < range.second;
        });
    }

    // Next to an occupied range, or at the edge.
    [[nodiscard]] std::uint64_t expected(AddressOrder order,
                                         std::uint64_t edge,
                                         std::uint64_t length) const {
        const bool ascending = order == AddressOrder::kAscending;
        std::vector<std::uint64_t> candidates = {ascending ? edge : edge - length};
        for (const auto& [begin, end] : taken) {
            candidates.push_back(ascending ? end : begin - length);
        }
        std::sort(candidates.begin(), candidates.end());
        if (!ascending) {
            std::reverse(candidates.begin(), candidates.end());
        }
        return *std::find_if(candidates.begin(), candidates.end(), [&](std::uint64_t begin) {
            return (ascending ? begin >= edge : begin + length <= edge) &&
                   free(begin, begin + length);
        });
    }
};

TEST_CASE("addresses: ranges beyond the usual address space still get a place") {
    constexpr std::uint64_t kLarge = std::uint64_t{1} << 46;  // a damaged trace may say so
    for (const AddressOrder order :
         {AddressOrder::kAscending, AddressOrder::kDescending, AddressOrder::kScattered}) {
        AddressSpace space(order, 5);
        for (int i = 0; i < 5; ++i) {
            space.reserve(kLarge, 1);
        }
        REQUIRE(space.ranges().size() == 5);
        std::uint64_t end = 0;
        for (const auto& [begin, range] : space.ranges()) {
            CHECK(begin >= end);
            CHECK(range.end - begin == kLarge);
            end = range.end;
        }
    }
}

TEST_CASE("addresses: the lowest or highest sufficient gap is found, like by a plain search") {
    for (const AddressOrder order : {AddressOrder::kAscending, AddressOrder::kDescending}) {
        AddressSpace space(order, 0);
        AddressSpace fresh(order, 0);
        const std::uint64_t first = fresh.reserve(2 * kMiB, 0);
        const std::uint64_t edge = order == AddressOrder::kAscending ? first : first + 2 * kMiB;
        PlainAddresses plain;
        std::mt19937 random(7);
        for (int step = 0; step < 3000; ++step) {
            if (random() % 5 < 2 && !plain.taken.empty()) {
                const std::size_t at = random() % plain.taken.size();
                space.release(plain.taken[at].first);
                plain.taken.erase(plain.taken.begin() + static_cast<std::ptrdiff_t>(at));
                continue;
            }
            const std::uint64_t length = (1 + random() % 6) * 2 * kMiB;
            std::uint64_t begin = plain.expected(order, edge, length);
            if (random() % 4 == 0) {  // at an address chosen by the caller
                begin = first - 40 * kMiB + random() % 100 * kMiB;
                const bool possible = plain.free(begin, begin + length);
                REQUIRE(space.reserve_at(begin, length - kMiB, 1) == possible);
                if (!possible) {
                    continue;
                }
            } else {
                REQUIRE(space.reserve(length, 1) == begin);
            }
            plain.taken.emplace_back(begin, begin + length);
            std::sort(plain.taken.begin(), plain.taken.end());
            REQUIRE(space.ranges().size() == plain.taken.size());
        }
    }
}

TEST_CASE("the first list with a sufficient block is the one that a linear search finds") {
    std::mt19937 random(3);
    LargestByList lists;
    std::vector<std::uint64_t> plain;
    for (int step = 0; step < 5000; ++step) {
        const auto list =
            static_cast<std::uint32_t>(random() % (1 + static_cast<unsigned>(step) / 20));
        plain.resize(std::max<std::size_t>(plain.size(), list + 1));
        plain[list] = random() % 4 == 0 ? 0 : random() % 100;
        lists.set(list, plain[list]);
        const std::uint64_t size = 1 + random() % 100;
        const auto from = static_cast<std::uint32_t>(random() % 300);
        std::uint32_t expected = from;
        while (expected < plain.size() && plain[expected] < size) {
            ++expected;
        }
        REQUIRE(lists.first_with(size, from) ==
                (expected < plain.size() ? expected : LargestByList::kNone));
        REQUIRE(lists.largest() == *std::max_element(plain.begin(), plain.end()));
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
