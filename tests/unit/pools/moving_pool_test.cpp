// The bounds live, compact and pages: their sums, pending blocks, graph pools, and places without
// overlap.
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

namespace fragtrace::analyzer {
namespace {

std::unique_ptr<Pool> bound(std::string_view name, std::uint64_t capacity_bytes = 64 * kGiB) {
    auto pool = make_pool(
        name, "", std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, 2 * kMiB));
    REQUIRE(pool.ok());
    return std::move(pool).value();
}

std::uint64_t reserved(const Pool& pool) {
    return pool.statistics().reserved.current;
}

// Checks that segments add up to reserved, that blocks cover their segment, and that find() and
// snapshot() agree.
void check_places(const Pool& pool) {
    const HeapSnapshot heap = pool.snapshot();
    std::uint64_t sum = 0;
    std::uint64_t active = 0;
    for (const HeapSegment& segment : heap.segments) {
        DeviceAddress next = segment.address;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            REQUIRE(block.address == next);
            next += block.size_bytes;
            active += block.state == BlockState::kFree ? 0 : block.size_bytes;
            if (block.state == BlockState::kLive) {
                const auto place = pool.find(block.allocated_by);
                REQUIRE(place);
                REQUIRE(place->segment == segment.private_pool);
                REQUIRE(place->offset_bytes == block.address - segment.address);
            }
        }
        REQUIRE(next == segment.address + segment.size_bytes);
        sum += segment.size_bytes;
    }
    REQUIRE(sum == reserved(pool));
    REQUIRE(active == pool.statistics().active.current);
}

TEST_CASE("live counts requested bytes, compact rounds each request to 512") {
    const auto live = bound("live");
    const auto compact = bound("compact");
    for (Pool* pool : {live.get(), compact.get()}) {
        CHECK(pool->allocate({1, 100}).outcome == Outcome::kGrow);
        pool->allocate({2, 513});
        pool->release(1, {});
        pool->allocate({3, 1});
        check_places(*pool);
    }
    CHECK(live->statistics().reserved.peak == 613);
    CHECK(reserved(*live) == 514);
    CHECK(compact->statistics().reserved.peak == 1536);
    CHECK(compact->statistics().rounding_bytes == 511 + 511);
}

TEST_CASE("pages: large blocks use whole pages, small ones share them") {
    const auto pool = bound("pages");
    pool->allocate({1, 2 * kMiB + 1});
    CHECK(reserved(*pool) == 4 * kMiB);
    pool->allocate({2, kMiB});
    pool->allocate({3, kMiB});
    CHECK(reserved(*pool) == 6 * kMiB);
    pool->allocate({4, 1});
    CHECK(reserved(*pool) == 8 * kMiB);
    pool->allocate({5, 2 * kMiB});
    CHECK(reserved(*pool) == 10 * kMiB);
    check_places(*pool);
}

TEST_CASE("a freed block that another stream uses still counts in compact, not in live") {
    const auto live = bound("live");
    const auto compact = bound("compact");
    for (Pool* pool : {live.get(), compact.get()}) {
        pool->allocate({1, kMiB});
        CHECK(pool->release(1, {{7, 1}, {8, 1}}));
        CHECK_FALSE(pool->release(1, {}));
        CHECK_FALSE(pool->find(1));
        check_places(*pool);
    }
    CHECK(reserved(*live) == 0);
    CHECK(reserved(*compact) == kMiB);
    CHECK(compact->statistics().allocated.current == 0);
    compact->complete(7);
    CHECK(reserved(*compact) == kMiB);
    compact->complete(8);
    compact->complete(8);
    CHECK(reserved(*compact) == 0);
}

TEST_CASE("a graph pool's peak stays reserved until the pool has no user") {
    for (const char* name : {"live", "compact", "pages"}) {
        const auto pool = bound(name);
        pool->set_private_pool(3, {.graph = true});
        pool->allocate({1, 4 * kMiB, 0, 3});
        pool->allocate({2, 2 * kMiB, 0, 3});
        pool->release(1, {});
        pool->allocate({3, 2 * kMiB, 0, 3});
        pool->allocate({4, 2 * kMiB, 0, 0});
        CHECK(reserved(*pool) == 8 * kMiB);
        check_places(*pool);
        pool->release(2, {});
        pool->release(3, {});
        CHECK(reserved(*pool) == 8 * kMiB);
        pool->set_private_pool(3, {.freeable = true, .graph = true});
        CHECK(reserved(*pool) == 2 * kMiB);
        check_places(*pool);
    }
}

TEST_CASE("bounds treat a MemPool's blocks like all other blocks") {
    const auto pool = bound("compact");
    pool->set_private_pool(3, {.no_split = true});
    pool->allocate({1, kMiB, 0, 3});
    pool->release(1, {});
    CHECK(reserved(*pool) == 0);
}

TEST_CASE("a bound adopts live blocks, and all segments of graph pools") {
    const auto pool = bound("compact");
    pool->allocate({9, kMiB});
    HeapSnapshot heap;
    heap.segments = {{.address = 0, .size_bytes = 20 * kMiB, .first_block = 0, .block_count = 2},
                     {.address = 32 * kMiB,
                      .size_bytes = 2 * kMiB,
                      .first_block = 2,
                      .block_count = 1,
                      .private_pool = 5}};
    heap.blocks = {{.size_bytes = 4 * kMiB,
                    .requested_bytes = 4 * kMiB - 1,
                    .allocated_by = 1,
                    .state = BlockState::kLive},
                   {.size_bytes = 16 * kMiB},
                   {.size_bytes = 2 * kMiB,
                    .requested_bytes = kMiB,
                    .allocated_by = 2,
                    .state = BlockState::kLive}};
    REQUIRE(pool->adopt(heap));
    CHECK(reserved(*pool) == 5 * kMiB);
    CHECK_FALSE(pool->find(9));
    pool->set_private_pool(5, {.graph = true});
    CHECK(reserved(*pool) == 6 * kMiB);
    CHECK(pool->statistics().requested.current == 5 * kMiB - 1);
    check_places(*pool);
}

TEST_CASE("an out-of-memory changes nothing in a bound") {
    const auto pool = bound("compact", 8 * kMiB);
    pool->set_private_pool(1, {.graph = true});
    pool->allocate({1, 5 * kMiB});
    CHECK(pool->allocate({2, 4 * kMiB, 0, 1}).outcome == Outcome::kOutOfMemory);
    CHECK(pool->allocate({3, ~std::uint64_t{0}}).outcome == Outcome::kOutOfMemory);
    CHECK(reserved(*pool) == 5 * kMiB);
    CHECK(pool->statistics().ooms == 2);
    CHECK(pool->allocate({4, 3 * kMiB, 0, 1}).outcome == Outcome::kGrow);
    check_places(*pool);
}

TEST_CASE("on random scripts live is at most compact and pages, and those at most pytorch") {
    for (unsigned seed = 0; seed < 60; ++seed) {
        std::mt19937 random(seed);
        std::vector<std::unique_ptr<Pool>> pools;
        for (const char* name : {"live", "compact", "pages"}) {
            pools.push_back(bound(name));
        }
        auto pytorch = make_pool(
            "pytorch", "", std::make_unique<FixedDevice>(64 * kGiB, 64 * kGiB, 2 * kMiB), {0, 1});
        REQUIRE(pytorch.ok());
        pools.push_back(std::move(pytorch).value());
        std::vector<BlockId> live;
        PendingId event = 0;
        for (BlockId step = 0; step < 300; ++step) {
            if (live.empty() || random() % 5 < 3) {
                const Request request{.block = step,
                                      .requested_bytes = 1 + random() % (1u << random() % 25),
                                      .stream = static_cast<StreamId>(random() % 2)};
                for (const auto& pool : pools) {
                    REQUIRE(pool->allocate(request).outcome != Outcome::kOutOfMemory);
                }
                live.push_back(step);
            } else {
                const std::size_t at = random() % live.size();
                std::vector<Pool::PendingOn> pending;
                if (random() % 4 == 0) {
                    pending.push_back({event++, 1});
                }
                for (const auto& pool : pools) {
                    REQUIRE(pool->release(live[at], pending));
                }
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            }
            if (event != 0 && random() % 4 == 0) {
                for (const auto& pool : pools) {
                    pool->complete(event - 1);
                }
            }
            if (step % 50 == 0) {
                for (std::size_t i = 0; i < 3; ++i) {
                    check_places(*pools[i]);
                }
                pools[1] = pools[1]->clone();
            }
            REQUIRE(reserved(*pools[0]) <= reserved(*pools[1]));
            REQUIRE(reserved(*pools[0]) <= reserved(*pools[2]));
            REQUIRE(reserved(*pools[1]) <= reserved(*pools[3]));
        }
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
