// Pools of the program's own: what they hold, where their blocks lie, and why their requests fail.
#include "analyzer/analysis/program_pools.h"

#include <fragtrace/sizes.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "tests/support/trace_writer.h"
#include "tests/unit/holders/pool_trace.h"

#include <catch2/catch.hpp>

#include <string>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::keep_report;
using namespace fragtrace::analyzer::testing;

namespace {

std::string report_of(const Analysis& analysis) {
    return report_text(analysis, Terminal(1, ColorChoice::kNever), true);
}

}  // namespace

TEST_CASE("free memory of a pool is its segments without its blocks") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.device_alloc(kSegment + 64 * kMiB, 8 * kMiB, false);  // no block lies in it
    pools.alloc(kSegment, 200 * kKiB, 256 * kKiB);
    pools.alloc(kSegment + 256 * kKiB, 256 * kKiB, 256 * kKiB);
    pools.alloc(kSegment + 512 * kKiB, kUnknown64, 256 * kKiB);
    pools.free(kSegment + 256 * kKiB);
    pools.fails(512 * kKiB);
    pools.fails(kMiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    const ProgramPool& pool = analysis->program_pools[0];
    CHECK(pool.name == "frames");
    CHECK(pool.kind == "rmm-pool");
    CHECK(pool.memory == PoolMemory::kDevice);
    CHECK(pool.device == 0);
    CHECK(pool.allocations == 3);
    CHECK(pool.peak_allocated_bytes == 768 * kKiB);
    CHECK(pool.peak_reserved_bytes == kMiB);
    CHECK(pool.at_peak.blocks == 3);
    CHECK(pool.at_peak.largest_free_bytes == 256 * kKiB);
    CHECK(pool.failed == 2);
    REQUIRE(pool.failures.size() == 2);
    CHECK(pool.failures[0].requested_bytes == 512 * kKiB);
    CHECK(pool.failures[0].free_bytes() == 512 * kKiB);
    CHECK(pool.failures[0].largest_free_bytes == 256 * kKiB);
    CHECK(pool.live_blocks == 2);
    CHECK(pool.live_bytes == 512 * kKiB);
    CHECK(analysis->timeline.damage.frees_without_alloc == 0);
    const std::string text = report_of(*analysis);
    CHECK(text.find("frames (rmm-pool, device 0)") != std::string::npos);
    CHECK(text.find("2 requests; the first of 512 KiB") != std::string::npos);
    CHECK(text.find("fragmentation of the pool") != std::string::npos);
    keep_report("program_pools", report_json(*analysis));
}

TEST_CASE("a pool of a known kind is compared with its simulation") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, 64 * kMiB, false);
    for (std::uint64_t i = 0; i < 4; ++i) {
        pools.alloc(kSegment + i * 8 * kMiB, 8 * kMiB, 8 * kMiB);
    }
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    const ProgramPool& pool = analysis->program_pools[0];
    REQUIRE(pool.replays.size() == 2);
    CHECK(pool.replays[0].pool == "rmm-pool");
    CHECK(pool.replays[1].pool == "best-fit");
    CHECK(pool.replays[0].peak_reserved_bytes == 64 * kMiB);  // it begins with a segment like this
    CHECK(pool.replays[1].peak_reserved_bytes == 32 * kMiB);
}

TEST_CASE("pools inside each other keep their blocks at the same address apart") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, kMiB / 2, kMiB / 2, kFrames);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB, kArena);
    pools.free(kSegment, kArena);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 2);
    CHECK(analysis->program_pools[0].name == "frames");
    CHECK(analysis->program_pools[0].live_bytes == kMiB / 2);
    CHECK(analysis->program_pools[1].name == "arena of frames");
    CHECK(analysis->program_pools[1].live_bytes == 0);
    CHECK(analysis->program_pools[1].shares_memory);
    CHECK(analysis->timeline.damage.allocs_over_live == 0);
    CHECK(report_of(*analysis).find("free at most") != std::string::npos);
}

TEST_CASE("the end of a pool ends its blocks, but not those of other pools") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB, kFrames);
    pools.alloc(kSegment + 4 * kKiB, 4 * kKiB, 4 * kKiB, kArena);
    pools.end_pool(kFrames);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 2);
    for (const ProgramPool& pool : analysis->program_pools) {
        CHECK(pool.live_blocks == (pool.number == kFrames ? 0 : 1));
    }
    CHECK(analysis->timeline.partner[1] == 3);
}

TEST_CASE("blocks end with the memory in which they lie, and late frees change nothing") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.trace.device_free(kSegment, false);
    pools.trace.device_alloc(kSegment, 2 * kMiB, false);
    pools.alloc(kSegment + kMiB, 8 * kKiB, 8 * kKiB);
    pools.free(kSegment);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    CHECK(analysis->program_pools[0].live_bytes == 8 * kKiB);
    CHECK(analysis->program_pools[0].peak_allocated_bytes == 8 * kKiB);
    CHECK(analysis->program_pools[0].peak_reserved_bytes == 2 * kMiB);
}

TEST_CASE("a mapping is a segment until its memory is unmapped") {
    PoolTrace pools;
    constexpr std::uint64_t kRange = 0x400000000000;
    for (std::uint64_t i = 0; i < 3; ++i) {
        pools.trace.simple(EventKind::kMap, kRange + i * 4 * kMiB, 4 * kMiB, 100 + i, true);
        pools.alloc(kRange + i * 4 * kMiB, kMiB, kMiB);
    }
    pools.trace.simple(EventKind::kUnmap, kRange, 8 * kMiB, 0, true);  // two mappings
    pools.alloc(kRange + 9 * kMiB, 2 * kMiB, 2 * kMiB);
    pools.fails(2 * kMiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    const ProgramPool& pool = analysis->program_pools[0];
    CHECK(pool.memory == PoolMemory::kDevice);
    CHECK(pool.peak_reserved_bytes == 12 * kMiB);
    CHECK(pool.live_bytes == 3 * kMiB);
    REQUIRE(pool.failures.size() == 1);
    CHECK(pool.failures[0].reserved_bytes == 4 * kMiB);
    CHECK(pool.failures[0].largest_free_bytes == kMiB);
}

TEST_CASE("mappings that follow each other in one reservation are one segment") {
    PoolTrace pools;
    constexpr std::uint64_t kRange = 0x400000000000;
    pools.trace.simple(EventKind::kAddressReserve, kRange, 16 * kMiB, 0, true);
    pools.trace.simple(EventKind::kMap, kRange, 2 * kMiB, 100, true);
    pools.alloc(kRange, kMiB, kMiB);
    pools.trace.simple(EventKind::kMap, kRange + 2 * kMiB, 4 * kMiB, 101, true);
    pools.alloc(kRange + kMiB, 2 * kMiB, 2 * kMiB);  // lies in both
    pools.alloc(kRange + 4 * kMiB, kMiB, kMiB);
    pools.fails(2 * kMiB);
    pools.trace.simple(EventKind::kUnmap, kRange + 2 * kMiB, 4 * kMiB, 0, true);
    pools.fails(2 * kMiB);
    pools.trace.simple(EventKind::kUnmap, kRange, 2 * kMiB, 0, true);
    pools.fails(2 * kMiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    const ProgramPool& pool = analysis->program_pools[0];
    CHECK(pool.memory == PoolMemory::kDevice);
    CHECK(pool.peak_allocated_bytes == 4 * kMiB);
    CHECK(pool.peak_reserved_bytes == 6 * kMiB);
    REQUIRE(pool.failures.size() == 3);
    CHECK(pool.failures[0].reserved_bytes == 6 * kMiB);
    CHECK(pool.failures[0].largest_free_bytes == kMiB);
    CHECK(pool.failures[1].reserved_bytes == 2 * kMiB);  // the blocks behind it ended
    CHECK(pool.failures[1].allocated_bytes == kMiB);
    CHECK(pool.failures[2].reserved_bytes == 0);
}

TEST_CASE("mappings of two reservations, or with a gap between them, are two segments") {
    for (const std::uint64_t gap : {std::uint64_t{0}, kMiB}) {
        PoolTrace pools;
        constexpr std::uint64_t kRange = 0x400000000000;
        pools.trace.simple(EventKind::kAddressReserve, kRange, 2 * kMiB + 4 * gap, 0, true);
        pools.trace.simple(EventKind::kMap, kRange, 2 * kMiB, 100, true);
        pools.alloc(kRange, kMiB, kMiB);
        if (gap == 0) {
            pools.trace.simple(EventKind::kAddressReserve, kRange + 2 * kMiB, 2 * kMiB, 0, true);
        }
        pools.trace.simple(EventKind::kMap, kRange + 2 * kMiB + gap, 2 * kMiB, 101, true);
        pools.alloc(kRange + 3 * kMiB + gap, kMiB, kMiB);  // free memory lies on both sides
        pools.fails(2 * kMiB);
        const auto analysis = pools.analyze();
        REQUIRE(analysis->program_pools.size() == 1);
        REQUIRE(analysis->program_pools[0].failures.size() == 1);
        CHECK(analysis->program_pools[0].failures[0].reserved_bytes == 4 * kMiB);
        CHECK(analysis->program_pools[0].failures[0].largest_free_bytes == kMiB);
    }
}

TEST_CASE("the reserved memory of a pool in unrecorded memory is unknown") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment + kMiB - 512, 4 * kKiB, 4 * kKiB);  // only its begin lies in the segment
    pools.fails(kMiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    CHECK(analysis->program_pools[0].memory == PoolMemory::kUnknown);
    CHECK(analysis->program_pools[0].peak_allocated_bytes == 4 * kKiB);
    const std::string text = report_of(*analysis);
    CHECK(text.find("reserved and free memory unknown") != std::string::npos);
    CHECK(text.find("the cause is unknown") != std::string::npos);
}

TEST_CASE("a pool inside a block of PyTorch does not change PyTorch's figures") {
    const auto record = [](bool with_pool) {
        PoolTrace pools;
        pools.trace.device_alloc(kSegment, 20 * kMiB, true);
        pools.trace.block_alloc(kSegment, 4 * kMiB, 4 * kMiB);
        if (with_pool) {
            pools.alloc(kSegment, kMiB, kMiB);
            pools.alloc(kSegment + kMiB, kMiB, kMiB);
        }
        pools.trace.block_free(kSegment, 4 * kMiB);
        if (with_pool) {
            pools.free(kSegment);
        }
        return pools.analyze();
    };
    const auto with = record(true);
    const auto without = record(false);
    REQUIRE(with->devices.size() == 1);
    CHECK(with->devices[0].pool == "pytorch");
    CHECK(with->devices[0].violations == 0);
    CHECK(with->devices[0].recorded.peak_allocated == without->devices[0].recorded.peak_allocated);
    CHECK(with->devices[0].recorded.peak_reserved == without->devices[0].recorded.peak_reserved);
    CHECK(with->devices[0].script.steps.size() == without->devices[0].script.steps.size());
    REQUIRE(with->program_pools.size() == 1);
    const ProgramPool& pool = with->program_pools[0];
    CHECK(pool.peak_reserved_bytes == 4 * kMiB);  // the block, not the segment of PyTorch
    CHECK(pool.peak_allocated_bytes == 2 * kMiB);
    CHECK(pool.live_bytes == 0);
}

TEST_CASE("the report of an out-of-memory says what the pool held") {
    PoolTrace pools;
    pools.trace.simple(EventKind::kMemoryInfo, 0, 8 * kMiB, 16 * kMiB);
    pools.trace.device_alloc(kSegment, 6 * kMiB, false);
    pools.alloc(kSegment, kMiB, kMiB);
    pools.trace.simple(EventKind::kAllocRefused, 0, 4 * kMiB, 2);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    const ProgramPool& pool = analysis->program_pools[0];
    REQUIRE(pool.at_out_of_memory.size() == 1);
    CHECK(pool.at_out_of_memory[0].allocated_bytes == kMiB);
    CHECK(pool.at_out_of_memory[0].free_bytes() == 5 * kMiB);
    const std::string text = summary_text(*analysis, Terminal(1, ColorChoice::kNever), true);
    CHECK(text.find("when device 0 ran out of memory") != std::string::npos);
}

TEST_CASE("a label of a pool's block is part of its line") {
    PoolTrace pools;
    pools.trace.fact("text.1", "kv cache");
    const std::uint32_t code = pools.trace.code("grow", "serve/cache.py", 80);
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.trace.set_python_stack(pools.trace.python_node(0, code, 88));
    pools.alloc(kSegment, 4 * kKiB, 4 * kKiB);
    pools.label(kSegment, 1);
    pools.label(kSegment, 1, kArena);  // no such block: ignored
    const auto analysis = pools.analyze();
    const EventIndex alloc = 1;
    const Timeline& timeline = analysis->timeline;
    CHECK(timeline.origins[timeline.events[alloc].origin].label == 1);
}

TEST_CASE("failures from before the first block, and of a pool without blocks, are kept") {
    PoolTrace pools;
    pools.fails(3 * kMiB, kArena);
    pools.fails(2 * kMiB);
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 8 * kKiB, 8 * kKiB);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 2);
    const ProgramPool& frames = analysis->program_pools[0];
    CHECK(frames.number == kFrames);
    CHECK(frames.failed == 1);
    REQUIRE(frames.failures.size() == 1);
    CHECK(frames.failures[0].requested_bytes == 2 * kMiB);
    CHECK(frames.failures[0].reserved_bytes == 0);
    const ProgramPool& arena = analysis->program_pools[1];
    CHECK(arena.number == kArena);
    CHECK(arena.memory == PoolMemory::kUnknown);
    CHECK(arena.allocations == 0);
    REQUIRE(arena.failures.size() == 1);
    CHECK(arena.failures[0].requested_bytes == 3 * kMiB);
    const std::string text = report_of(*analysis);
    CHECK(text.find("1 request; the first of 3 MiB") != std::string::npos);
    CHECK(text.find("no block showed the memory of the pool") != std::string::npos);
    keep_report("failed_program_pools", report_json(*analysis));
}

TEST_CASE("a trace with only failed requests of pools has a report of them") {
    PoolTrace pools;
    pools.fails(3 * kMiB);
    CHECK(pools.analyze()->program_pools.size() == 1);
}

TEST_CASE("the pools with the highest peaks are simulated") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, 64 * kMiB, false);
    for (std::uint32_t number = 1; number <= 20; ++number) {
        pools.alloc(kSegment + number * kMiB, number * kKiB, number * kKiB, number);
    }
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 20);
    for (const ProgramPool& pool : analysis->program_pools) {
        CHECK(pool.replays.empty() == (pool.number <= 4));
    }
    CHECK(analysis->program_pools.back().name == "(more pools than are kept)");
    CHECK(report_of(*analysis).find("stands for several") != std::string::npos);
}

TEST_CASE("a checkpoint keeps free segments, ended blocks and the count of allocations") {
    const auto record = [](bool paused) {
        PoolTrace pools;
        const std::uint64_t other = kSegment + 64 * kMiB;
        const std::uint64_t gone = kSegment + 128 * kMiB;
        pools.trace.device_alloc(kSegment, 16 * kMiB, false);
        pools.trace.device_alloc(other, 64 * kMiB, false);
        pools.trace.device_alloc(gone, kMiB, false);
        pools.alloc(kSegment, 12 * kMiB, 12 * kMiB);
        pools.alloc(other, kMiB, kMiB);
        pools.free(other);
        pools.alloc(gone, kMiB, kMiB);
        pools.trace.device_free(gone, false);
        pools.trace.device_alloc(gone, kMiB, false);
        if (paused) {
            pools.trace.simple(EventKind::kCheckpointBegin, 0, 0, 0);
            pools.trace.device_alloc(kSegment, 16 * kMiB, false);
            pools.trace.device_alloc(other, 64 * kMiB, false);
            pools.alloc(kSegment, 12 * kMiB, 12 * kMiB);
            pools.alloc(gone, kMiB, kMiB);  // the recorder does not know that it ended
            pools.trace.device_alloc(gone, kMiB, false);
            pools.trace.simple(EventKind::kCheckpointEnd, 0, 0, 0);
        }
        pools.fails(32 * kMiB);
        pools.free(gone);
        return pools.analyze();
    };
    for (const bool paused : {false, true}) {
        const auto analysis = record(paused);
        REQUIRE(analysis->program_pools.size() == 1);
        const ProgramPool& pool = analysis->program_pools[0];
        CHECK(pool.allocations == 3);
        CHECK(pool.peak_allocated_bytes == 13 * kMiB);
        CHECK(pool.live_blocks == 1);
        REQUIRE(pool.failures.size() == 1);
        CHECK(pool.failures[0].reserved_bytes == 80 * kMiB);
        CHECK(pool.failures[0].largest_free_bytes == 64 * kMiB);
    }
}

TEST_CASE("made-up events of pools do not stop the analysis") {
    PoolTrace pools;
    pools.trace.device_alloc(kSegment, kMiB, false);
    pools.alloc(kSegment, 0, 0);
    pools.alloc(kSegment, 8 * kKiB, 8 * kKiB, 77);             // a pool without a fact
    pools.alloc(kSegment + 4 * kKiB, 8 * kKiB, 8 * kKiB, 77);  // overlaps it
    pools.free(0x1234);
    pools.end_pool(0);
    pools.label(kSegment, 99, 77);
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 1);
    CHECK(analysis->program_pools[0].name == "pool 77");
    CHECK(analysis->program_pools[0].live_bytes == 8 * kKiB);
    CHECK(analysis->timeline.damage.frees_without_alloc == 1);
    CHECK(!report_of(*analysis).empty());
}
