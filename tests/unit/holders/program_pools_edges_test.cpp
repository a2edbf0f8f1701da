// Pools of the program's own in unusual memory: shared by several pools, on other devices, freed,
// smaller than their requests.
#include "analyzer/analysis/program_pools.h"
#include "tests/unit/holders/pool_trace.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::analyzer::testing;

namespace {

const ProgramPool& pool_of(const Analysis& analysis, std::uint32_t number) {
    for (const ProgramPool& pool : analysis.program_pools) {
        if (pool.number == number) {
            return pool;
        }
    }
    FAIL("there is no pool " << number);
    return analysis.program_pools.front();
}

}  // namespace

TEST_CASE("every pool in one memory knows that it shares the memory") {
    constexpr std::uint32_t kThird = 4;
    constexpr std::uint64_t kOther = kSegment + 64 * kMiB;
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.device_alloc(kOther, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB, kFrames);
    pools.alloc(kSegment + 4 * kKiB, 4 * kKiB, 4 * kKiB, kArena);
    pools.alloc(kSegment + 8 * kKiB, 4 * kKiB, 4 * kKiB, kThird);
    pools.alloc(kOther, 4 * kKiB, 4 * kKiB, kFrames);  // here it is alone
    const auto analysis = pools.analyze();
    for (const std::uint32_t number : {kFrames, kArena, kThird}) {
        CHECK(pool_of(*analysis, number).shares_memory);
    }
}

TEST_CASE("the first of two pools in one memory learns of the second one") {
    constexpr std::uint64_t kOther = kSegment + 64 * kMiB;
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.device_alloc(kOther, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB, kFrames);
    pools.alloc(kSegment + 4 * kKiB, 4 * kKiB, 4 * kKiB, kArena);
    pools.alloc(kOther, 4 * kKiB, 4 * kKiB, kFrames);
    CHECK(pool_of(*pools.analyze(), kFrames).shares_memory);
}

TEST_CASE("the end of an allocation does not end other memory that has its address now") {
    PoolTrace pools;
    pools.trace.simple(EventKind::kHostAlloc, kSegment, kMiB, 0);
    pools.trace.simple(EventKind::kHostRegister, kSegment, kMiB, 0);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.trace.simple(EventKind::kHostFree, kSegment, 0, 0);
    pools.alloc(kSegment + 4 * kKiB, 4 * kKiB, 4 * kKiB);
    pools.fails(kGiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);  // all blocks lie in pinned memory
    CHECK(pool_of(*analysis, kFrames).live_bytes == 8 * kKiB);
    CHECK(pool_of(*analysis, kFrames).failures.at(0).reserved_bytes == kMiB);
}

TEST_CASE("after a checkpoint, memory of another device is no segment of the pool") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.free(kSegment);
    pools.trace.simple(EventKind::kCheckpointBegin, 0, 0, 0);
    pools.trace.set_device(1);
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.set_device(0);
    pools.trace.simple(EventKind::kCheckpointEnd, 0, 0, 0);
    pools.fails(kGiB);
    const auto analysis = pools.analyze();
    CHECK(pool_of(*analysis, kFrames).failures.at(0).reserved_bytes == 0);
}

TEST_CASE("a block of PyTorch has room for a pool beyond the bytes that were requested") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, 20 * kMiB, true);
    pools.trace.block_alloc(kSegment, kMiB, 4 * kMiB);
    pools.alloc(kSegment + 2 * kMiB, kMiB, kMiB);
    const auto analysis = pools.analyze();
    CHECK(pool_of(*analysis, kFrames).peak_reserved_bytes == 4 * kMiB);
}

TEST_CASE("an arena that began with little memory is simulated with the least that one has") {
    PoolTrace pools;
    pools.trace.fact("pool.2", "program rmm-arena frames");
    pools.trace.device_alloc(kSegment, 64 * kKiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = pool_of(*analysis, kFrames);
    REQUIRE(pool.replays.size() == 2);
    CHECK(pool.replays[0].pool == "rmm-arena");
    CHECK(pool.replays[0].peak_reserved_bytes == kMiB);
}

TEST_CASE("a request of unknown size is simulated with the size of its block") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, 64 * kMiB, false);
    pools.alloc(kSegment, kUnknown64, 32 * kMiB, kArena);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = pool_of(*analysis, kArena);
    REQUIRE(pool.replays.size() == 1);
    CHECK(pool.replays[0].peak_reserved_bytes == 32 * kMiB);
}

TEST_CASE("a pool in host memory is not described when a device runs out of memory") {
    PoolTrace pools;
    pools.trace.simple(EventKind::kMemoryInfo, 0, 8 * kMiB, 16 * kMiB);
    pools.trace.simple(EventKind::kHostAlloc, kSegment, kMiB, 0);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.trace.simple(EventKind::kAllocRefused, 0, 9 * kMiB, 2);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = pool_of(*analysis, kFrames);
    CHECK(pool.memory == PoolMemory::kHost);
    CHECK(pool.device == 0);
    CHECK(pool.at_out_of_memory.empty());
}

TEST_CASE("the peak of a pool's memory stays when the memory is freed") {
    constexpr std::uint64_t kOther = kSegment + 64 * kMiB;
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.device_alloc(kOther, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.alloc(kOther, 4 * kKiB, 4 * kKiB);
    pools.trace.device_free(kOther, false);
    pools.alloc(kSegment + 8 * kKiB, 4 * kKiB, 4 * kKiB);
    const auto analysis = pools.analyze();
    CHECK(pool_of(*analysis, kFrames).peak_reserved_bytes == 2 * kMiB);
}

TEST_CASE("the largest free block need not be the last one") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment + 512 * kKiB, 256 * kKiB, 256 * kKiB);
    const auto analysis = pools.analyze();
    CHECK(pool_of(*analysis, kFrames).at_peak.largest_free_bytes == 512 * kKiB);
}

TEST_CASE("all failed requests are counted, and the first three are described") {
    PoolTrace pools;
    for (std::uint64_t request = 1; request <= 5; ++request) {
        pools.fails(request * kMiB);
    }
    const auto analysis = pools.analyze();
    const ProgramPool& pool = pool_of(*analysis, kFrames);
    CHECK(pool.failed == 5);
    REQUIRE(pool.failures.size() == 3);
    CHECK(pool.failures[2].requested_bytes == 3 * kMiB);
}

TEST_CASE("a pool without blocks keeps its failures although a later pool has blocks") {
    PoolTrace pools;
    pools.fails(3 * kMiB, kFrames);
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB, kArena);
    const auto analysis = pools.analyze();
    CHECK(pool_of(*analysis, kFrames).failed == 1);
    CHECK(pool_of(*analysis, kArena).failed == 0);
}
