// One approved case for each verdict, made with the simulated PyTorch pool.
#include "analyzer/analysis/verdict/verdict.h"

#include "analyzer/analysis/verdict/diagnosis.h"
#include "analyzer/analysis/verdict/library_verdict.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

namespace {

std::unique_ptr<Pool> pytorch(std::uint64_t capacity_bytes,
                              const char* config = "",
                              std::uint64_t total_bytes = 0) {
    auto pool =
        make_pool("pytorch",
                  config,
                  std::make_unique<FixedDevice>(
                      total_bytes == 0 ? capacity_bytes : total_bytes, capacity_bytes, 2 * kMiB),
                  {0, 64});
    REQUIRE(pool.ok());
    return std::move(pool).value();
}

Outcome allocate(Pool& pool, BlockId block, std::uint64_t bytes, StreamId stream = 0) {
    return pool.allocate({.block = block, .requested_bytes = bytes, .stream = stream}).outcome;
}

Verdict verdict_of_failure(Pool& pool,
                           std::uint64_t bytes,
                           StreamId stream = 0,
                           std::uint64_t others_bytes = 0) {
    REQUIRE(allocate(pool, 100'000, bytes, stream) == Outcome::kOutOfMemory);
    return judge(
        pool, {.block = 100'001, .requested_bytes = bytes, .stream = stream}, others_bytes);
}

}  // namespace

TEST_CASE("stitchable: 256 MiB requested after every other of 188 blocks was freed") {
    const auto pool = pytorch(1894 * kMiB);
    for (BlockId i = 0; i < 188; ++i) {
        REQUIRE(allocate(*pool, i, 9 * kMiB) != Outcome::kOutOfMemory);
    }
    for (BlockId i = 1; i < 188; i += 2) {
        pool->release(i, {});
    }
    const Verdict verdict = verdict_of_failure(*pool, 256 * kMiB);
    CHECK(verdict.id == "stitchable");
    CHECK(verdict.page_bytes == 2 * kMiB);
    CHECK(verdict.largest_hole_bytes == 11 * kMiB);
    CHECK(verdict.free_bytes == 1034 * kMiB);
    CHECK(verdict.allocated_bytes == 846 * kMiB);
    CHECK(verdict.reserved_bytes == 1880 * kMiB);
    CHECK(verdict.despite_free_memory());
    // PyTorch's own 20 MiB pages come before the driver's pages, and do not help.
    REQUIRE(verdict.steps.size() >= 2);
    CHECK(verdict.steps[verdict.steps.size() - 2].id == "stitchable");
    CHECK(verdict.steps[verdict.steps.size() - 2].page_bytes == 20 * kMiB);
    CHECK_FALSE(verdict.steps[verdict.steps.size() - 2].serves);

    // 14 MiB are free on the device. 13 of the 94 segments of 20 MiB provide the rest.
    HeapSnapshot heap = pool->snapshot();
    heap.device_free_bytes = pool->device().free_bytes();
    const CheapestSet set = find_cheapest_set(heap, 256 * kMiB, pool->driver_bytes(256 * kMiB));
    CHECK(set.kind == CheapestSet::Kind::kSegments);
    CHECK(set.segments == 13);
    CHECK(set.bytes_to_free == 13 * 9 * kMiB);
    double combinations = 1;  // 94 choose 13
    for (int i = 0; i < 13; ++i) {
        combinations = combinations * (94 - i) / (i + 1);
    }
    CHECK(set.equally_cheap_sets == Approx(combinations));
}

TEST_CASE("granularity: the driver has room for the request, not for a 20 MiB segment") {
    const auto pool = pytorch(30 * kMiB);
    allocate(*pool, 0, 15 * kMiB);
    const Verdict verdict = verdict_of_failure(*pool, 8 * kMiB);
    CHECK(verdict.id == "granularity");
    CHECK(verdict.despite_free_memory());
}

TEST_CASE("limit: the process's own fraction of the card refuses the request") {
    const auto pool = pytorch(1000 * kMiB, "per_process_memory_fraction:0.1");
    const Verdict verdict = verdict_of_failure(*pool, 200 * kMiB);
    CHECK(verdict.id == "limit");
    CHECK_FALSE(verdict.despite_free_memory());
}

TEST_CASE("stream_bound: the free block belongs to another stream") {
    const auto pool = pytorch(100 * kMiB);
    allocate(*pool, 0, 90 * kMiB, 1);
    pool->release(0, {});
    allocate(*pool, 1, 10 * kMiB, 1);
    CHECK(verdict_of_failure(*pool, 70 * kMiB, 0).id == "stream_bound");
}

TEST_CASE("other_pool: the free block belongs to the small size class") {
    const auto pool = pytorch(2 * kMiB);
    allocate(*pool, 0, 512);
    CHECK(verdict_of_failure(*pool, 1258291).id == "other_pool");
}

TEST_CASE("compaction_only: every hole is smaller than a page") {
    const auto pool = pytorch(20 * kMiB);
    for (BlockId i = 0; i < 13; ++i) {
        REQUIRE(allocate(*pool, i, 1536 * 1024) != Outcome::kOutOfMemory);
    }
    for (BlockId i = 1; i < 13; i += 2) {
        pool->release(i, {});
    }
    CHECK(verdict_of_failure(*pool, 9 * kMiB).id == "compaction_only");
}

TEST_CASE("rounding: remainders that were not split off would be enough") {
    const auto pool = pytorch(200 * kMiB);
    for (BlockId i = 0; i < 10; ++i) {
        REQUIRE(allocate(*pool, i, 19 * kMiB + 512 * 1024) != Outcome::kOutOfMemory);
    }
    CHECK(verdict_of_failure(*pool, 4 * kMiB).id == "rounding");
}

TEST_CASE("rounding: the requested size counts, not the rounded size") {
    const auto pool = pytorch(20 * kMiB);
    allocate(*pool, 0, 20 * kMiB - 524188);
    CHECK(verdict_of_failure(*pool, 524188).id == "rounding");
}

TEST_CASE("stitchable: pages of exactly the request's size are enough") {
    const auto pool = pytorch(80 * kMiB);
    for (BlockId i = 0; i < 8; ++i) {
        REQUIRE(allocate(*pool, i, 9 * kMiB) != Outcome::kOutOfMemory);
    }
    for (BlockId i = 1; i < 8; i += 2) {
        pool->release(i, {});  // five whole pages of 2 MiB each, and the rest of its segment
    }
    const Verdict verdict = verdict_of_failure(*pool, 40 * kMiB);
    CHECK(verdict.id == "stitchable");
    CHECK(verdict.page_bytes == 2 * kMiB);
    CHECK(verdict_of_failure(*pool, 40 * kMiB + 1).id == "compaction_only");
}

TEST_CASE("genuine: only the pool of a CUDA graph has free memory") {
    const auto pool = pytorch(60 * kMiB);
    pool->set_private_pool(5, {.graph = true});
    const Request of_graph{.block = 0, .requested_bytes = 40 * kMiB, .private_pool = 5};
    REQUIRE(pool->allocate(of_graph).outcome == Outcome::kGrow);
    pool->release(0, {});
    allocate(*pool, 1, 20 * kMiB);
    CHECK(verdict_of_failure(*pool, 30 * kMiB).id == "genuine");
}

TEST_CASE("outside_pool and genuine: nothing in the pool is free") {
    const auto pool = pytorch(100 * kMiB, "", 200 * kMiB);
    allocate(*pool, 0, 100 * kMiB);
    const Verdict outside = verdict_of_failure(*pool, 50 * kMiB, 0, 100 * kMiB);
    CHECK(outside.id == "outside_pool");
    CHECK_FALSE(outside.despite_free_memory());
    const Verdict genuine = judge(*pool, {.block = 7, .requested_bytes = 50 * kMiB}, 0);
    CHECK(genuine.id == "genuine");
    CHECK_FALSE(genuine.despite_free_memory());
}

TEST_CASE("a retry is judged on the state before the pool released its cache") {
    ReplayScript script;
    script.streams = {0, 64};
    const auto allocation = [&](BlockId block, std::uint64_t bytes) {
        script.steps.push_back({.event = block, .block = block, .value = bytes});
    };

    SECTION("releasable: whole cached segments took the memory") {
        for (BlockId i = 0; i < 4; ++i) {
            allocation(i, 20 * kMiB);
        }
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = 0});
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = 2});
        allocation(4, 45 * kMiB);
    }
    SECTION("pending: a freed block still waits for another stream") {
        allocation(0, 90 * kMiB);
        script.pending.push_back({1, 1});
        script.steps.push_back({.kind = Step::Kind::kRelease, .block = 0, .pending_count = 1});
        allocation(1, 90 * kMiB);
    }
    const bool pending = !script.pending.empty();

    const auto pool = pytorch(100 * kMiB);
    const ReplayResult result = replay(script, *pool);
    REQUIRE(result.troubles.size() == 1);
    CHECK(result.troubles[0].outcome == Outcome::kRetryOk);
    const auto diagnoses = diagnose(script, result.troubles, {.pool = pytorch(100 * kMiB)}, 0, 16);
    REQUIRE(diagnoses.size() == 1);
    CHECK(diagnoses[0].verdict.id == (pending ? "pending" : "releasable"));
    CHECK(diagnoses[0].verdict.free_bytes == (pending ? 0 : 40 * kMiB));
}

TEST_CASE("pending: a failed retry has waited for the block that would serve the request") {
    ReplayScript script;
    script.streams = {0, 64};
    const auto allocation = [&](BlockId block, std::uint64_t bytes) {
        script.steps.push_back({.event = block, .block = block, .value = bytes});
    };
    allocation(0, 80 * kMiB);
    script.steps.push_back({.kind = Step::Kind::kRelease, .block = 0});
    allocation(1, 40 * kMiB);
    allocation(2, 40 * kMiB);  // in the same segment, which it keeps from being released
    script.pending.push_back({1, 1});
    script.steps.push_back({.kind = Step::Kind::kRelease, .block = 1, .pending_count = 1});
    allocation(3, 40 * kMiB);
    const auto pool = pytorch(100 * kMiB);
    const ReplayResult result = replay(script, *pool);
    REQUIRE(result.troubles.size() == 1);
    const auto diagnoses = diagnose(script, result.troubles, {.pool = pytorch(100 * kMiB)}, 0, 16);
    REQUIRE(diagnoses.size() == 1);
    const Verdict& verdict = diagnoses[0].verdict;
    CHECK(diagnoses[0].trouble.outcome == Outcome::kOutOfMemory);
    CHECK(verdict.id == "pending");
    CHECK(verdict.requester == "pool");
    CHECK(verdict.steps.back().frees_bytes == 40 * kMiB);
    CHECK(diagnoses[0].cheapest.bytes_to_free == 0);
}

TEST_CASE("releasable: the pool rejects the request before it releases its cache") {
    const auto pool = pytorch(100 * kMiB, "throw_on_cudamalloc_oom:True");
    allocate(*pool, 0, 40 * kMiB);
    pool->release(0, {});
    const Request request{.block = 1, .requested_bytes = 70 * kMiB};
    REQUIRE(pool->allocate(request).outcome == Outcome::kRejected);
    const Verdict verdict = judge(*pool, request, 0);
    CHECK(verdict.id == "releasable");
    CHECK(verdict.steps.back().frees_bytes == 40 * kMiB);
    CHECK(verdict.despite_free_memory());
}

TEST_CASE("other_pool: the cache of a private pool in use cannot be released") {
    const auto pool = pytorch(80 * kMiB);
    pool->set_private_pool(1, {});
    const auto ask = [&](BlockId block, std::uint64_t bytes) {
        return Request{.block = block, .requested_bytes = bytes, .private_pool = 1};
    };
    REQUIRE(pool->allocate(ask(0, 60 * kMiB)).outcome == Outcome::kGrow);
    pool->release(0, {});
    REQUIRE(pool->allocate(ask(1, 70 * kMiB)).outcome == Outcome::kOutOfMemory);
    const Verdict verdict = judge(*pool, ask(1, 70 * kMiB), 0);
    CHECK(verdict.id == "other_pool");
    CHECK(verdict.steps.back().frees_bytes >= 60 * kMiB);
}

TEST_CASE("unexplained: the state could serve the request, so no cause is named") {
    // The driver refused in the trace, although the card had room as far as is known.
    const auto pool = pytorch(580 * kMiB);
    allocate(*pool, 0, 280 * kMiB);
    const Verdict grows = judge(*pool, {.block = 1, .requested_bytes = 50 * kMiB}, 0);
    CHECK(grows.id == "unexplained");
    CHECK(grows.steps.empty());
    CHECK(grows.also_served_by.empty());
    CHECK_FALSE(grows.despite_free_memory());
    CHECK(verdict_sentence(grows, Outcome::kOutOfMemory).starts_with("Out of memory: 50 MiB"));
    CHECK(verdict_explanation(grows).find("shows enough free memory") != std::string::npos);
    // After a wait the driver was asked and refused again, so the wait does not explain it either.
    CHECK(judge(*pool, {.block = 1, .requested_bytes = 50 * kMiB}, 0, 40 * kMiB).id ==
          "unexplained");
}

TEST_CASE("a retry names free blocks of another stream that would have avoided it") {
    const auto pool = pytorch(100 * kMiB);
    allocate(*pool, 0, 60 * kMiB, 1);
    pool->release(0, {});
    const Verdict verdict = judge(*pool, {.block = 1, .requested_bytes = 60 * kMiB}, 0);
    CHECK(verdict.id == "releasable");
    CHECK(verdict.also_served_by == std::vector<std::string_view>{"stream_bound"});
}

TEST_CASE("a library's failed request is judged by what the pool could release") {
    const auto pool = pytorch(200 * kMiB);
    REQUIRE(allocate(*pool, 0, 100 * kMiB) == Outcome::kGrow);  // one segment, used in three parts
    pool->release(0, {});
    allocate(*pool, 1, 31 * kMiB);
    allocate(*pool, 2, 39 * kMiB - 300 * 1024);
    allocate(*pool, 3, 30 * kMiB);
    allocate(*pool, 4, 60 * kMiB);  // a segment of its own
    pool->release(1, {});
    pool->release(3, {});
    pool->release(4, {});
    const std::uint64_t free_bytes = pool->device().free_bytes();
    REQUIRE(free_bytes == 40 * kMiB);
    const auto ask = [&](std::uint64_t bytes, std::uint64_t others = 0) {
        return judge_library(*pool, bytes, free_bytes, others);
    };
    const Verdict releasable = ask(90 * kMiB);
    CHECK(releasable.id == "releasable");
    CHECK(releasable.requester == "library");
    CHECK(releasable.despite_free_memory());
    CHECK(releasable.steps.back().frees_bytes == 60 * kMiB);
    CHECK(verdict_explanation(releasable).find("cached 60 MiB in segments without a live block") !=
          std::string::npos);
    CHECK(verdict_sentence(releasable, Outcome::kOutOfMemory)
              .starts_with("An allocation outside the pool"));
    CHECK(ask(158 * kMiB).id == "stitchable");  // 30 and 30 MiB in whole pages
    CHECK(ask(161 * kMiB).id == "compaction_only");
    CHECK(ask(190 * kMiB, 64 * kMiB).id == "outside_pool");
    CHECK(ask(190 * kMiB).id == "genuine");
    CHECK(pool->statistics().reserved.current == 160 * kMiB);  // judging does not change the pool
}

TEST_CASE("every replay repeats a library's request") {
    ReplayScript script;
    script.streams = {0};
    script.steps.push_back({.event = 0, .block = 0, .value = 60 * kMiB});
    script.steps.push_back({.kind = Step::Kind::kRelease, .event = 1, .block = 0});
    script.libraries.push_back({.event = 2,
                                .asked_bytes = 70 * kMiB,
                                .device_free_bytes = 30 * kMiB,
                                .pool_bytes = 60 * kMiB,
                                .beside_bytes = 10 * kMiB});
    const auto as_it_was = pytorch(100 * kMiB);
    const ReplayResult failed = replay(script, *as_it_was);
    CHECK(failed.libraries_failed == 1);
    CHECK_FALSE(failed.divergence);
    const auto larger = pytorch(140 * kMiB);
    const ReplayResult served = replay(script, *larger);
    CHECK(served.libraries_failed == 0);
    REQUIRE(served.divergence);
    CHECK(served.divergence->kind == Divergence::Kind::kIsServed);
    // If the cache is emptied before, the pool leaves enough for the library.
    script.steps.push_back({.kind = Step::Kind::kEmptyCache, .event = 1});
    const auto emptied = pytorch(100 * kMiB);
    CHECK(replay(script, *emptied).libraries_failed == 0);

    const auto diagnoses =
        diagnose_libraries(script, script.libraries, {.pool = pytorch(100 * kMiB)}, 0);
    REQUIRE(diagnoses.size() == 1);
    CHECK(diagnoses[0].verdict.requester == "library");
    CHECK(diagnoses[0].trouble.event == 2);
}
