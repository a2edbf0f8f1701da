// What private pools hold, from an address map.
#include "analyzer/analysis/holders/held_pools.h"

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

void add_segment(HeapSnapshot* heap,
                 std::uint32_t pool,
                 std::uint64_t live_bytes,
                 std::uint64_t free_bytes,
                 EventIndex obtained_by) {
    // In no memory of another segment, and of no block that the run allocates.
    const DeviceAddress address = (heap->segments.size() + 1) << 40;
    heap->segments.push_back({.address = address,
                              .size_bytes = live_bytes + free_bytes,
                              .first_block = static_cast<std::uint32_t>(heap->blocks.size()),
                              .block_count = 2,
                              .private_pool = pool,
                              .obtained_by = obtained_by});
    heap->blocks.push_back({.size_bytes = live_bytes, .state = BlockState::kLive});
    heap->blocks.push_back({.size_bytes = free_bytes, .state = BlockState::kFree});
}

}  // namespace

TEST_CASE("private pools are summed, with the line that made their oldest segment") {
    MadeUpRun run;
    PoolIdentity graph;
    graph.owner = PoolIdentity::Owner::kPytorch;
    graph.first = 1;  // (1, 0): made by a capture
    run.timeline.pools[3] = graph;
    PoolIdentity mem_pool;
    mem_pool.owner = PoolIdentity::Owner::kPytorch;
    mem_pool.second = 1;
    run.timeline.pools[4] = mem_pool;
    const EventIndex first = run.alloc(run.line("capture"), 1);
    const EventIndex second = run.alloc(run.line("later"), 1);
    const EventIndex other = run.alloc(run.line("load"), 1);
    HeapSnapshot heap;
    add_segment(&heap, 0, 100 * kMiB, kMiB, other);  // the default pool
    add_segment(&heap, 4, 3 * kMiB, kMiB, other);
    add_segment(&heap, 3, 6 * kMiB, 2 * kMiB, second);
    add_segment(&heap, 3, kMiB, kMiB, first);
    Symbolizer symbols(run.timeline);
    const std::vector<PrivatePool> pools = private_pools_of(run.timeline, heap, &symbols);
    REQUIRE(pools.size() == 2);
    CHECK(pools[0].number == 3);
    CHECK(pools[0].of_graph);
    CHECK(pools[0].reserved_bytes == 10 * kMiB);
    CHECK(pools[0].allocated_bytes == 7 * kMiB);
    CHECK(pools[0].line.find("capture") != std::string::npos);
    CHECK(pools[1].number == 4);
    CHECK_FALSE(pools[1].of_graph);
    CHECK(pools[1].reserved_bytes == 4 * kMiB);
    CHECK(pools[1].line.find("load") != std::string::npos);
}

TEST_CASE("a private pool whose requests are not in the trace has no line") {
    MadeUpRun run;
    HeapSnapshot heap;
    add_segment(&heap, 9, kMiB, 0, kNoEvent);
    Symbolizer symbols(run.timeline);
    const std::vector<PrivatePool> pools = private_pools_of(run.timeline, heap, &symbols);
    REQUIRE(pools.size() == 1);
    CHECK(pools[0].line.empty());
    CHECK_FALSE(pools[0].of_graph);  // what the number means is not known
}

TEST_CASE("the report lists the largest private pools, with their lines") {
    DeviceAnalysis device;
    Holders& holders = device.held.holders.emplace_back();
    const auto add = [&](std::uint32_t number, std::uint64_t mib, const char* line) {
        holders.private_pools.push_back({.number = number,
                                         .of_graph = true,
                                         .reserved_bytes = mib * kMiB,
                                         .allocated_bytes = kMiB,
                                         .line = line});
    };
    add(7, 4, "run.py:3 capture");
    CHECK(private_pool_lines(device).at(0).text ==
          "CUDA graphs hold 4 MiB in 1 private pool (3 MiB of it free); its oldest segment was "
          "requested by run.py:3 capture");
    add(2, 3, "run.py:9 warm_up");
    add(5, 2, "");
    add(6, 1, "run.py:9 warm_up");
    CHECK(
        private_pool_lines(device).at(0).text ==
        "CUDA graphs hold 10 MiB in 4 private pools (6 MiB of it free); pool 7: 4 MiB (3 MiB of it "
        "free), its oldest segment by run.py:3 capture; pool 2: 3 MiB (2 MiB of it free), its "
        "oldest segment by run.py:9 warm_up; pool 5: 2 MiB (1 MiB of it free); and 1 more");
}

TEST_CASE("private pools have the program's names, and say what is unmapped for now") {
    DeviceAnalysis device;
    Holders& holders = device.held.holders.emplace_back();
    holders.private_pools.push_back({.number = 3,
                                     .name = "kv\ncache",
                                     .reserved_bytes = 8 * kMiB,
                                     .allocated_bytes = 8 * kMiB,
                                     .unmapped_bytes = 8 * kMiB,
                                     .line = ""});
    CHECK(private_pool_lines(device).at(0).text ==
          "MemPools hold 8 MiB in 1 private pool, pool 3 \"kv\\ncache\" (all of it unmapped for "
          "now)");
    holders.private_pools.push_back({.number = 4,
                                     .reserved_bytes = 4 * kMiB,
                                     .allocated_bytes = 4 * kMiB,
                                     .unmapped_bytes = kMiB,
                                     .line = ""});
    CHECK(private_pool_lines(device).at(0).text ==
          "MemPools hold 12 MiB in 2 private pools (9 MiB of it unmapped for now); pool 3 "
          "\"kv\\ncache\": 8 MiB (all of it unmapped for now); pool 4: 4 MiB (1 MiB of it unmapped "
          "for now)");
}
