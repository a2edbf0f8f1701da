// Pools of the program's own whose settings are recorded: the replay block by block, and remedies.
#include <fragtrace/sizes.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/program_pools.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "tests/support/trace_writer.h"
#include "tests/unit/holders/pool_trace.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::keep_report;
using namespace fragtrace::analyzer::testing;

namespace {

constexpr std::uint32_t kBfc = 4;
constexpr std::uint64_t kSecond = kSegment + 64 * kMiB;

struct BfcTrace : PoolTrace {
    BfcTrace(std::uint64_t limit_bytes, const char* settings) {
        trace.fact("pool.4", "program bfc GPU_0_bfc");
        trace.fact("pool.4.limit", std::to_string(limit_bytes));
        trace.fact("pool.4.settings", settings);
    }

    // Blocks and failures as BFC itself makes them, in growing regions.
    void run() {
        trace.device_alloc(kSegment, 2 * kMiB, false);
        alloc(kSegment, 1000, 1024, kBfc);
        alloc(kSegment + 1024, 200, 256, kBfc);
        free(kSegment, kBfc);
        alloc(kSegment, 700, 1024, kBfc);  // not split: the rest would be smaller than the request
        trace.device_alloc(kSecond, 4 * kMiB, false);
        alloc(kSecond, 4 * kMiB, 4 * kMiB, kBfc);
        fails(32 * kMiB, kBfc);
    }
};

std::string report_of(const Analysis& analysis) {
    return report_text(analysis, Terminal(1, ColorChoice::kNever), true);
}

const ProgramPool& bfc_of(const Analysis& analysis) {
    const auto pool = std::find_if(analysis.program_pools.begin(),
                                   analysis.program_pools.end(),
                                   [](const ProgramPool& one) { return one.number == kBfc; });
    REQUIRE(pool != analysis.program_pools.end());
    return *pool;
}

}  // namespace

TEST_CASE("a pool with recorded settings replays block by block, failures included") {
    BfcTrace pools(16 * kMiB, "preallocate:0,garbage_collection:True");
    pools.run();
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->reason == "");
    CHECK(pool.fidelity->not_judged == "");
    CHECK(pool.fidelity->placements == 5);
    CHECK(pool.fidelity->placements_equal == 5);
    CHECK(pool.fidelity->segments == 2);
    CHECK(pool.fidelity->segments_equal == 2);
    CHECK(pool.fidelity->exact());
    CHECK(pool.remedies.empty());  // they are settings of TensorFlow
    CHECK(report_of(*analysis).find(
              "5 of 5 placements equal, 2 of 2 segments (bfc, preallocate:0") != std::string::npos);
    keep_report("program_pools_fidelity", report_json(*analysis));
}

TEST_CASE("other settings than the recorded ones are noticed in placements and segments") {
    BfcTrace pools(16 * kMiB, "preallocate:1");
    pools.run();
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    REQUIRE(pool.fidelity);
    CHECK_FALSE(pool.fidelity->exact());
    CHECK(pool.fidelity->placements_equal == 4);  // the large block is in another segment
    CHECK(pool.fidelity->segments_equal == 0);
    CHECK(pool.fidelity->reason ==
          "event 1: the recorded pool allocates 2 MiB from the driver, the replay 16 MiB");
}

TEST_CASE("one block at another place is one placement that differs") {
    BfcTrace pools(16 * kMiB, "preallocate:0");
    pools.trace.device_alloc(kSegment, 2 * kMiB, false);
    pools.alloc(kSegment, 256, 256, kBfc);
    pools.alloc(kSegment + 512, 256, 256, kBfc);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->placements_equal == 1);
    CHECK(pool.fidelity->placements == 2);
    CHECK(pool.fidelity->reason ==
          "event 2: 256 B placed in segment 0 at +256, recorded in segment 0 at +512");
    CHECK(report_of(*analysis).find("the first difference: event 2") != std::string::npos);
}

TEST_CASE("without settings, or in unrecorded memory, no fidelity is claimed") {
    BfcTrace unknown(16 * kMiB, "");
    unknown.run();
    CHECK_FALSE(bfc_of(*unknown.analyze()).fidelity);

    BfcTrace elsewhere(16 * kMiB, "preallocate:0");
    elsewhere.trace.device_alloc(kSecond, kMiB, false);
    elsewhere.alloc(kSegment, 256, 256, kBfc);
    const auto analysis = elsewhere.analyze();
    REQUIRE(bfc_of(*analysis).fidelity);
    CHECK_FALSE(bfc_of(*analysis).fidelity->exact());
    CHECK(report_of(*analysis).find("not judged: the memory of the pool was not recorded") !=
          std::string::npos);

    BfcTrace nonsense(16 * kMiB, "preallocate:yes");
    nonsense.run();
    CHECK(bfc_of(*nonsense.analyze()).fidelity->not_judged ==
          "the pool's settings are not understood");
}

TEST_CASE("a fragmented pool of TensorFlow gets the settings that serve the request") {
    BfcTrace pools(256 * kMiB, "preallocate:1,garbage_collection:True");
    pools.trace.fact("tensorflow.pool", "recorded");
    pools.trace.device_alloc(kSegment, 256 * kMiB, false);
    for (std::uint64_t i = 0; i < 30; ++i) {
        pools.alloc(kSegment + i * 8 * kMiB, 8 * kMiB, 8 * kMiB, kBfc);
    }
    for (std::uint64_t i = 0; i < 30; i += 2) {
        pools.free(kSegment + i * 8 * kMiB, kBfc);
    }
    pools.fails(32 * kMiB, kBfc);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->exact());
    const auto served = [&pool](const std::string& setting) {
        return std::any_of(pool.remedies.begin(),
                           pool.remedies.end(),
                           [&setting](const ProgramPoolRemedy& remedy) {
                               return remedy.setting == setting && remedy.failed == 0 &&
                                      remedy.served == 1;
                           });
    };
    CHECK(served("TF_GPU_ALLOCATOR=cuda_malloc_async"));
    CHECK_FALSE(served("TF_FORCE_GPU_ALLOW_GROWTH=true"));
    CHECK(report_of(*analysis).find("TF_GPU_ALLOCATOR=cuda_malloc_async: 0 of 1 request fail, all "
                                    "are served (estimate") != std::string::npos);
}
