// Pools of the program's own against simulated ones: fidelity, failed requests, culprits, remedies.
#include <fragtrace/sizes.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/program_pools.h"
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

constexpr std::uint32_t kArrays = 4;

// Segment number i of a trace.
std::uint64_t segment(std::uint64_t i) {
    return kSegment + i * 64 * kMiB;
}

// A pool of CuPy: a new segment has exactly the size of its first block.
class CupyTrace : public PoolTrace {
  public:
    explicit CupyTrace(std::uint64_t limit_bytes = 0) {
        trace.fact("pool.4", "program cupy arrays");
        if (limit_bytes != 0) {
            trace.fact("pool.4.limit", std::to_string(limit_bytes));
        }
    }

    void grow(std::uint64_t address, std::uint64_t size_bytes) {
        trace.device_alloc(address, size_bytes, false);
        take(address, size_bytes);
    }

    void take(std::uint64_t address, std::uint64_t size_bytes) {
        alloc(address, size_bytes, size_bytes, kArrays);
    }

    void give(std::uint64_t address) { free(address, kArrays); }

    void refuse(std::uint64_t size_bytes) {
        trace.simple(EventKind::kAllocRefused, 0, size_bytes, 2);
    }

    void call_from(const std::string& function, std::uint32_t line) {
        const std::uint32_t code = trace.code(function, "model/net.py", line);
        python_stack = trace.python_node(0, code, line);
    }
};

std::string report_of(const Analysis& analysis) {
    return report_text(analysis, Terminal(1, ColorChoice::kNever), true);
}

const ProgramPool& only_pool(const Analysis& analysis) {
    REQUIRE(analysis.program_pools.size() == 1);
    REQUIRE(analysis.program_pools[0].fidelity);
    return analysis.program_pools[0];
}

}  // namespace

TEST_CASE("a pool that follows the rules of its kind is replayed exactly") {
    CupyTrace pools;
    pools.grow(segment(1), kMiB);
    pools.grow(segment(0), 2 * kMiB);  // the later one has the lower address
    pools.give(segment(1));
    pools.take(segment(1), kMiB / 2);
    pools.take(segment(1) + kMiB / 2, kMiB / 2);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());
    CHECK(pool.fidelity->placements == 4);
    CHECK(pool.fidelity->placements_equal == 4);
    CHECK(pool.fidelity->placements_chosen == 0);
    CHECK(pool.fidelity->segments == 2);
    CHECK(pool.fidelity->segments_equal == 2);
    REQUIRE(pool.replays.size() == 2);
    CHECK(pool.replays[0].exact);
    CHECK(pool.replays[0].peak_reserved_bytes == pool.peak_reserved_bytes);
    CHECK(!pool.replays[1].exact);
    const std::string text = report_of(*analysis);
    CHECK(text.find("100.00 %: the replay reproduces 4 of 4 placements and 2 of 2 segments") !=
          std::string::npos);
    CHECK(text.find("cupy 3 MiB (exact)") != std::string::npos);
}

TEST_CASE("among equal free blocks the replay takes the recorded one, and says how often") {
    CupyTrace pools;
    for (std::uint64_t i = 0; i < 3; ++i) {
        pools.grow(segment(i), kMiB);
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
        pools.give(segment(i));
    }
    pools.take(segment(2), kMiB);
    pools.take(segment(0), kMiB);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());
    CHECK(pool.fidelity->placements_chosen == 1);  // the lower one needs no choice
    CHECK(report_of(*analysis).find("1 placement: the replay took the recorded one") !=
          std::string::npos);
}

TEST_CASE("a placement against the rules is a difference, and the peak is an estimate") {
    CupyTrace pools;
    pools.grow(segment(0), 2 * kMiB);
    pools.grow(segment(1), kMiB);
    pools.give(segment(0));
    pools.give(segment(1));
    pools.take(segment(0), kMiB);  // the best fit is the other one
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->placements_equal == 2);
    CHECK(!pool.replays[0].exact);
    CHECK(pool.fidelity->reason.find("placed in segment 1") != std::string::npos);
    CHECK(report_of(*analysis).find("first difference: event ") != std::string::npos);
}

TEST_CASE("a segment of another size than the pool would request is a difference") {
    CupyTrace pools;
    pools.trace.device_alloc(segment(0), 2 * kMiB, false);
    pools.take(segment(0), kMiB);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->segments_equal == 0);
    CHECK(pool.fidelity->placements_equal == 1);
    CHECK(!pool.fidelity->exact());
}

TEST_CASE("a pool that empties itself after a refusal of the driver is replayed exactly") {
    CupyTrace pools;
    pools.grow(segment(0), 4 * kMiB);
    pools.grow(segment(1), 2 * kMiB);
    pools.give(segment(0));
    pools.refuse(8 * kMiB);
    pools.trace.device_free(segment(0), false);
    pools.grow(segment(2), 8 * kMiB);
    pools.take(segment(3), 4 * kMiB);  // in memory that was not recorded: another part
    const auto analysis = pools.analyze();
    REQUIRE(analysis->program_pools.size() == 2);
    const ProgramPool& pool = analysis->program_pools[0];
    CHECK(pool.memory == PoolMemory::kDevice);
    CHECK(pool.fidelity->exact());
    CHECK(pool.replays[0].peak_reserved_bytes == 10 * kMiB);
    CHECK(analysis->program_pools[1].fidelity->not_judged ==
          "the memory of the pool was not recorded");
}

TEST_CASE("a program that empties its pool is replayed exactly") {
    CupyTrace pools;
    pools.grow(segment(0), kMiB);
    pools.grow(segment(1), kMiB);
    pools.give(segment(0));
    pools.trace.device_free(segment(0), false);
    pools.grow(segment(0), kMiB);  // not from the cache, although it would have served it
    CHECK(only_pool(*pools.analyze()).fidelity->exact());
}

TEST_CASE("a pool of CuPy that empties itself at its limit is replayed exactly") {
    CupyTrace pools(4 * kMiB);
    for (std::uint64_t i = 0; i < 4; ++i) {
        pools.grow(segment(i), kMiB);
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        pools.give(segment(i));
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        pools.trace.device_free(segment(i), false);
    }
    pools.grow(segment(4), 2 * kMiB);
    pools.fails(3 * kMiB, kArrays);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());
    CHECK(pool.failures[0].failure == PoolFailure::kTooLittle);
    CHECK(pool.replays[0].config == "limit:4194304");
}

TEST_CASE("a pool that splits its only segment fails, and emptying it before would have helped") {
    CupyTrace pools(8 * kMiB);
    pools.grow(segment(0), 8 * kMiB);
    pools.give(segment(0));
    for (std::uint64_t i = 0; i < 8; ++i) {
        pools.call_from(i % 2 == 0 ? "scratch" : "keep", 10);
        pools.take(segment(0) + i * kMiB, kMiB);
    }
    for (std::uint64_t i = 0; i < 8; i += 2) {
        pools.give(segment(0) + i * kMiB);
    }
    pools.fails(2 * kMiB, kArrays);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());  // the replay fails there, too
    CHECK(pool.failures[0].failure == PoolFailure::kFragmented);
    CHECK(pool.failures[0].culprit.bytes == 4 * kMiB);
    CHECK(pool.failures[0].culprit.label.find("keep") != std::string::npos);
    CHECK(pool.remedy_bytes == 8 * kMiB);
    REQUIRE(pool.remedies.size() == 3);
    // Event 3 is the first block of the split: the pool was empty before it.
    CHECK(pool.remedies[0].change.find("free_all_blocks() just before event 3,") !=
          std::string::npos);
    CHECK(pool.remedies[0].serves == ProgramPoolRemedy::Serves::kYes);
    CHECK(pool.remedies[0].failed == 0);
    CHECK(pool.remedies[1].pool == "cuda-async");
    CHECK(pool.remedies[2].pool == "rmm-pool");
    CHECK(pool.remedies[2].serves == ProgramPoolRemedy::Serves::kNo);  // as fragmented as this one
    CHECK(pool.remedies[2].change.find("initial_pool_size=8388608") != std::string::npos);
    const std::string text = report_of(*analysis);
    CHECK(text.find("replayed with 8 MiB (the limit of the pool)") != std::string::npos);
    CHECK(text.find("in the way: the request succeeds (estimate)") != std::string::npos);
    CHECK(text.find("the request still fails (estimate)") != std::string::npos);
    keep_report("program_pool_remedies", report_json(*analysis));
}

TEST_CASE("the culprit is the line with the fewest bytes without which a range is large enough") {
    CupyTrace pools(8 * kMiB);
    pools.grow(segment(0), 8 * kMiB);
    pools.give(segment(0));
    for (std::uint64_t i = 0; i < 8; ++i) {
        pools.call_from(i == 6       ? "keep_one"
                        : i % 2 == 0 ? "keep_many"
                                     : "scratch",
                        static_cast<std::uint32_t>(10 + i % 2 + (i == 6 ? 20 : 0)));
        pools.take(segment(0) + i * kMiB, kMiB);
    }
    for (std::uint64_t i = 1; i < 8; i += 2) {
        pools.give(segment(0) + i * kMiB);
    }
    pools.fails(2 * kMiB, kArrays);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());
    REQUIRE(pool.failures.size() == 1);
    const ProgramPoolMoment& failure = pool.failures[0];
    CHECK(failure.failure == PoolFailure::kFragmented);
    CHECK(failure.culprit.label.find("keep_one") != std::string::npos);
    CHECK(failure.culprit.bytes == kMiB);
    CHECK(failure.culprit.blocks == 1);
    CHECK(failure.without_culprit_bytes == 3 * kMiB);  // free, the block, free
    CHECK(report_of(*analysis).find("culprit    1 MiB in 1 block") != std::string::npos);
}

TEST_CASE("a culprit's blocks that lie together count together, those of other lines do not") {
    CupyTrace pools(8 * kMiB);
    pools.grow(segment(0), 8 * kMiB);
    pools.give(segment(0));
    const char* const lines[] = {"a", "a", "b", "a", "c", "b", "b", "c"};
    for (std::uint64_t i = 0; i < 8; ++i) {
        pools.call_from(lines[i], 10);
        pools.take(segment(0) + i * kMiB, kMiB);
    }
    pools.give(segment(0) + 7 * kMiB);
    pools.give(segment(0) + 4 * kMiB);
    pools.fails(2 * kMiB, kArrays);
    const ProgramPool pool = only_pool(*pools.analyze());
    REQUIRE(pool.failures.size() == 1);
    // Without "a": 3 and 4 together. Without "b": 4 to 7. "c" has no block left.
    CHECK(pool.failures[0].culprit.bytes == 3 * kMiB);
    CHECK(pool.failures[0].without_culprit_bytes >= 2 * kMiB);
}

TEST_CASE("a request that needs more than the limit leaves is too large, whatever is free") {
    CupyTrace pools(4 * kMiB);
    pools.grow(segment(0), kMiB);
    pools.give(segment(0));
    pools.fails(8 * kMiB, kArrays);
    pools.fails(3 * kMiB + 512, kArrays);  // 3 MiB are left below the limit, 1 MiB is cached
    const ProgramPool pool = only_pool(*pools.analyze());
    REQUIRE(pool.failures.size() == 2);
    CHECK(pool.failures[0].failure == PoolFailure::kTooLittle);
    CHECK(pool.failures[1].failure == PoolFailure::kFragmented);
    CHECK(pool.remedies.empty());  // for the first one
}

TEST_CASE("room below the limit does not count if the driver refused it") {
    CupyTrace pools(64 * kMiB);
    pools.grow(segment(0), kMiB);
    for (int i = 0; i < 3; ++i) {  // CuPy asks three times
        pools.refuse(8 * kMiB);
    }
    pools.fails(8 * kMiB, kArrays);
    const ProgramPool pool = only_pool(*pools.analyze());
    CHECK(pool.failures[0].failure == PoolFailure::kTooLittle);
    CHECK(pool.fidelity->exact());
}

TEST_CASE("a pool of RMM that fails by fragmentation is tried as the other resources of RMM") {
    PoolTrace pools;
    pools.trace.fact("pool.2.limit", std::to_string(64 * kMiB));
    pools.trace.device_alloc(kSegment, 64 * kMiB, false);
    for (std::uint64_t i = 0; i < 8; ++i) {
        pools.alloc(kSegment + i * 8 * kMiB, 8 * kMiB, 8 * kMiB);
    }
    for (std::uint64_t i = 0; i < 8; i += 2) {
        pools.free(kSegment + i * 8 * kMiB);
    }
    pools.fails(16 * kMiB);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = only_pool(*analysis);
    CHECK(pool.fidelity->exact());
    REQUIRE(pool.remedies.size() == 2);
    CHECK(pool.remedies[0].change.find("CudaAsyncMemoryResource") != std::string::npos);
    CHECK(pool.remedies[0].serves == ProgramPoolRemedy::Serves::kPerhaps);  // if it moves memory
    CHECK(pool.replays[1].pool == "best-fit");
    CHECK(pool.replays[1].peak_reserved_bytes == 64 * kMiB);  // without the request that failed
    CHECK(pool.remedies[1].change.find("arena_size=67108864") != std::string::npos);
    CHECK(report_of(*analysis).find("may succeed, since the driver's method is not public") !=
          std::string::npos);
    keep_report("program_pool_perhaps", report_json(*analysis));
}

TEST_CASE("a pool that was in use during a pause, or was created again, is not judged") {
    CupyTrace paused;
    paused.grow(segment(0), kMiB);
    paused.trace.simple(EventKind::kCheckpointBegin, 0, 0, 0);
    paused.grow(segment(0), kMiB);
    paused.trace.simple(EventKind::kCheckpointEnd, 0, 0, 0);
    CHECK(only_pool(*paused.analyze()).fidelity->not_judged ==
          "the pool was in use while nothing was recorded");
    CupyTrace again;
    again.grow(segment(0), kMiB);
    again.end_pool(kArrays);
    again.grow(segment(1), kMiB);
    const auto analysis = again.analyze();
    CHECK(only_pool(*analysis).fidelity->not_judged ==
          "the program destroyed the pool and created it again");
    CHECK(report_of(*analysis).find("fidelity   not judged: the program destroyed") !=
          std::string::npos);
}

TEST_CASE("many segments that come and go are replayed exactly") {
    CupyTrace pools;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        pools.grow(segment(i), 512 * (i + 1));
    }
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        pools.grow(kSegment - (i + 1) * kMiB, 512);
        pools.give(kSegment - (i + 1) * kMiB);
        pools.trace.device_free(kSegment - (i + 1) * kMiB, false);
    }
    CHECK(only_pool(*pools.analyze()).fidelity->exact());
}
