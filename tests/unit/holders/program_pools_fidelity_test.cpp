// Pools of the program's own whose settings and frameworks are recorded.
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
#include <utility>

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

const ProgramPool& bfc_of(const Analysis& analysis) {
    const auto pool = std::find_if(analysis.program_pools.begin(),
                                   analysis.program_pools.end(),
                                   [](const ProgramPool& one) { return one.number == kBfc; });
    REQUIRE(pool != analysis.program_pools.end());
    return *pool;
}

}  // namespace

TEST_CASE("a pool with recorded settings is replayed with them") {
    BfcTrace pools(16 * kMiB, "preallocate:0,garbage_collection:True");
    pools.run();
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    CHECK(pool.settings == "preallocate:0,garbage_collection:True");
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->reason == "");
    CHECK(pool.fidelity->not_judged == "");
    CHECK(pool.fidelity->exact());
    CHECK(pool.fidelity->segments == 2);
    REQUIRE_FALSE(pool.replays.empty());
    CHECK(pool.replays[0].config == "preallocate:0,garbage_collection:True,limit:1");
    keep_report("program_pools_fidelity", report_json(*analysis));
}

TEST_CASE("other settings than the recorded ones are noticed in placements and segments") {
    BfcTrace pools(16 * kMiB, "preallocate:1");
    pools.run();
    const ProgramPool pool = bfc_of(*pools.analyze());
    REQUIRE(pool.fidelity);
    CHECK_FALSE(pool.fidelity->exact());
    CHECK(pool.fidelity->segments_equal == 0);
}

TEST_CASE("without recorded settings, those that the recording shows are used") {
    BfcTrace unknown(16 * kMiB, "");
    unknown.run();
    const ProgramPool pool = bfc_of(*unknown.analyze());
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->exact());
    CHECK(pool.replays[0].config == "preallocate:0,limit:1");
}

TEST_CASE("settings that are not understood are not judged") {
    BfcTrace nonsense(16 * kMiB, "preallocate:yes");
    nonsense.run();
    CHECK(bfc_of(*nonsense.analyze()).fidelity->not_judged ==
          "the recorded settings of the pool are not understood");
}

TEST_CASE("a fragmented pool gets the remedies of the framework that was recorded") {
    for (const auto& [framework, change] :
         {std::pair("tensorflow.pool", "TF_GPU_ALLOCATOR=cuda_malloc_async"),
          std::pair("jax.pool", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async")}) {
        BfcTrace pools(256 * kMiB, "preallocate:1,garbage_collection:True");
        pools.trace.fact(framework, "recorded");
        pools.trace.device_alloc(kSegment, 256 * kMiB, false);
        for (std::uint64_t i = 0; i < 30; ++i) {
            pools.alloc(kSegment + i * 8 * kMiB, 8 * kMiB, 8 * kMiB, kBfc);
        }
        for (std::uint64_t i = 0; i < 30; i += 2) {
            pools.free(kSegment + i * 8 * kMiB, kBfc);
        }
        pools.fails(32 * kMiB, kBfc);
        const auto analysis = pools.analyze();
        CHECK(report_text(*analysis, Terminal(1, ColorChoice::kNever), true)
                  .find("Pool GPU_0_bfc ran out of memory despite free memory: 32 MiB requested, "
                        "136 MiB free, largest free range 16 MiB.") != std::string::npos);
        const ProgramPool& pool = bfc_of(*analysis);
        REQUIRE(pool.fidelity);
        CHECK(pool.fidelity->exact());
        REQUIRE(pool.remedies.size() == 1);
        CHECK(pool.remedies[0].change == change);
        CHECK(pool.remedies[0].serves != ProgramPoolRemedy::Serves::kNo);
    }
}

namespace {

const std::string kOnnxRuntime = "preallocate:0,onnxruntime:True,exact_regions:False";

// One run on a stream leaves a region of 4 MiB free. The next one requests 6 MiB.
struct OnnxRuntimeTrace : BfcTrace {
    explicit OnnxRuntimeTrace(std::uint64_t limit_bytes)
        : BfcTrace(limit_bytes, kOnnxRuntime.c_str()) {
        trace.fact("onnxruntime.pool", "recorded");
        card(64 * kMiB, 64 * kMiB);
        trace.device_alloc(kSegment, kMiB, false);
        alloc(kSegment, 256 * kKiB, 256 * kKiB, kBfc);  // weights
        stream = 0x40;
        alloc(kSegment + 256 * kKiB, 256 * kKiB, 256 * kKiB, kBfc);
        free(kSegment + 256 * kKiB, kBfc);
        stream = 0x50;  // does not use the free block of the other stream
        alloc(kSegment + 512 * kKiB, 256 * kKiB, 256 * kKiB, kBfc);
        end_stream(0x40, kBfc);
        alloc(kSegment + 256 * kKiB, 256 * kKiB, 256 * kKiB, kBfc);
        trace.device_alloc(kSecond, 4 * kMiB, false);
        alloc(kSecond, 3 * kMiB, 4 * kMiB, kBfc);
        free(kSecond, kBfc);
        free(kSegment + 256 * kKiB, kBfc);
        free(kSegment + 512 * kKiB, kBfc);
        end_stream(0x50, kBfc);
        fails(6 * kMiB, kBfc);
    }
};

}  // namespace

TEST_CASE("a pool of ONNX Runtime is replayed with the streams of its blocks") {
    OnnxRuntimeTrace pools(8 * kMiB);
    const ProgramPool pool = bfc_of(*pools.analyze());
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->exact());
    CHECK(pool.fidelity->placements == 5);
}

TEST_CASE("a pool of ONNX Runtime without a limit is replayed with its settings") {
    OnnxRuntimeTrace pools(0);
    const ProgramPool pool = bfc_of(*pools.analyze());
    REQUIRE_FALSE(pool.replays.empty());
    CHECK(pool.replays.front().config == kOnnxRuntime + ",limit:1");
}

TEST_CASE("a fragmented pool of ONNX Runtime gets remedies in its options") {
    OnnxRuntimeTrace pools(8 * kMiB);
    const ProgramPool pool = bfc_of(*pools.analyze());
    using Serves = ProgramPoolRemedy::Serves;
    REQUIRE(pool.remedies.size() == 3);
    CHECK(pool.remedies[0].change == "provider option arena_extend_strategy=kSameAsRequested");
    CHECK(pool.remedies[0].serves == Serves::kNo);
    CHECK(pool.remedies[1].change ==
          "run option memory.enable_memory_arena_shrinkage=gpu:0 for every run");
    CHECK(pool.remedies[1].serves == Serves::kYes);
    CHECK(pool.remedies[2].change.find("provider option gpu_mem_limit=") == 0);
    CHECK(pool.remedies[2].serves == Serves::kYes);
}

TEST_CASE("a pool that serves requests from both ends is replayed as partitioned") {
    BfcTrace pools(64 * kMiB, "");
    pools.trace.fact("jax.pool", "recorded");
    pools.trace.device_alloc(kSegment, 64 * kMiB, false);
    const std::uint64_t end = kSegment + 64 * kMiB;
    pools.alloc(end - 16 * kMiB, 16 * kMiB, 16 * kMiB, kBfc, kFlagUpperEnd);
    pools.alloc(kSegment, 16 * kMiB, 16 * kMiB, kBfc);
    pools.alloc(end - 24 * kMiB, 8 * kMiB, 8 * kMiB, kBfc, kFlagUpperEnd);
    pools.free(end - 16 * kMiB, kBfc);
    pools.alloc(kSegment + 16 * kMiB, 16 * kMiB, 16 * kMiB, kBfc);  // not into the hole above
    pools.fails(12 * kMiB, kBfc);                                   // 8 MiB are left between them
    const ProgramPool pool = bfc_of(*pools.analyze());
    CHECK(pool.settings == "preallocate:1,partitioned:True");
    REQUIRE(pool.fidelity);
    CHECK(pool.fidelity->exact());
    CHECK(pool.fidelity->placements == 4);
    REQUIRE_FALSE(pool.remedies.empty());
    CHECK(pool.remedies[0].change ==
          "XLA_FLAGS=--xla_gpu_enable_allocator_spatial_partitioning=false");
    CHECK(pool.remedies[0].serves == ProgramPoolRemedy::Serves::kYes);
}

namespace {

// A pool with half of a card fails at 48 MiB of it; `free_bytes` of the card are free.
struct SmallPool : BfcTrace {
    explicit SmallPool(std::uint64_t free_bytes, const char* framework = "jax.pool")
        : BfcTrace(64 * kMiB, "preallocate:1") {
        trace.fact(framework, "recorded");
        card(free_bytes + 64 * kMiB, 128 * kMiB);
        trace.device_alloc(kSegment, 64 * kMiB, false);
        alloc(kSegment, 40 * kMiB, 40 * kMiB, kBfc);
        fails(48 * kMiB, kBfc);
    }
};

}  // namespace

TEST_CASE("the least larger limit that serves the failed request is a remedy") {
    SmallPool pools(40 * kMiB);
    const auto analysis = pools.analyze();
    const ProgramPool& pool = bfc_of(*analysis);
    CHECK(pool.failures[0].failure == PoolFailure::kTooLittle);
    REQUIRE(pool.remedies.size() == 1);
    const ProgramPoolRemedy& remedy = pool.remedies[0];
    // 88 MiB are needed, 68.75 % of the card. The search ends within 2 MiB of it.
    CHECK((remedy.change == "XLA_PYTHON_CLIENT_MEM_FRACTION=0.69" ||
           remedy.change == "XLA_PYTHON_CLIENT_MEM_FRACTION=0.70"));
    CHECK(remedy.serves == ProgramPoolRemedy::Serves::kYes);
    CHECK(remedy.limit_bytes >= 88 * kMiB);
    CHECK(remedy.limit_bytes <= 90 * kMiB);
    CHECK(report_text(*analysis, Terminal(1, ColorChoice::kNever), true)
              .find("the request succeeds with a limit of 8") != std::string::npos);
    keep_report("program_pools_limit", report_json(*analysis));
}

TEST_CASE("a larger limit that the card cannot give is no remedy") {
    SmallPool pools(16 * kMiB);  // 80 MiB in all
    CHECK(bfc_of(*pools.analyze()).remedies.empty());
}

TEST_CASE("a limit is given in the terms of the framework") {
    SmallPool pools(40 * kMiB, "tensorflow.pool");
    const ProgramPool pool = bfc_of(*pools.analyze());
    REQUIRE(pool.remedies.size() == 1);
    CHECK(pool.remedies[0].change.rfind("tf.config.LogicalDeviceConfiguration(memory_limit=", 0) ==
          0);
    CHECK(pool.remedies[0].limit_bytes % kMiB == 0);
}
