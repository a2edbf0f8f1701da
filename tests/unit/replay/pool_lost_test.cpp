// A private pool that PyTorch loses count of: each request that maps counts one, however much it
// maps, and each unmap counts one, however much it unmaps.
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint32_t kGraphPool = 1;

class Script {
  public:
    Script() { script.streams = {0}; }

    void allocate(BlockId block, std::uint64_t mib) {
        script.steps.push_back({.kind = Step::Kind::kAllocate,
                                .event = next_++,
                                .block = block,
                                .private_pool = kGraphPool,
                                .value = mib * kMiB});
    }

    void release(BlockId block) {
        script.steps.push_back({.kind = Step::Kind::kRelease, .event = next_++, .block = block});
    }

    void use(bool freeable) {
        script.steps.push_back({.kind = Step::Kind::kPoolOptions,
                                .event = next_++,
                                .private_pool = kGraphPool,
                                .value = kPoolOfGraph | (freeable ? kPoolFreeable : 0)});
    }

    EventIndex empty_cache() {
        script.steps.push_back({.kind = Step::Kind::kEmptyCache, .event = next_});
        return next_++;
    }

    ReplayResult replay_under(std::string_view config) {
        auto pool = make_pool("pytorch",
                              config,
                              std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                              script.streams);
        REQUIRE(pool.ok());
        return replay(script, **pool);
    }

    ReplayScript script;

  private:
    EventIndex next_ = 1;
};

// One request maps 100 MiB, which are split into a part that stays and a part that is freed.
EventIndex cut_and_empty(Script* script) {
    script->use(false);
    script->allocate(1, 100);
    script->release(1);
    script->allocate(2, 20);
    script->use(true);
    return script->empty_cache();
}

TEST_CASE("results are uncertain once PyTorch drops a private pool with mapped memory") {
    Script script;
    const EventIndex emptied = cut_and_empty(&script);
    const ReplayResult result = script.replay_under("expandable_segments:True");
    REQUIRE(result.divergence);
    CHECK(result.divergence->kind == Divergence::Kind::kPoolLost);
    CHECK(result.divergence->event == emptied);
    WhatIfRow row;
    row.candidate.pool = "pytorch";
    row.result = result;
    SweepContext context;
    context.fidelity_exact = true;
    classify_row(context, &row);
    CHECK(row.row_class == RowClass::kEstimate);
}

TEST_CASE("without expandable segments the count is right and no pool is lost") {
    Script script;
    cut_and_empty(&script);
    CHECK_FALSE(script.replay_under("").divergence);
}

TEST_CASE("a pool is lost after more unmaps than mapping requests") {
    Script script;
    script.use(false);
    script.allocate(1, 100);
    script.release(1);
    for (BlockId block = 2; block < 7; ++block) {
        script.allocate(block, 20);
    }
    script.release(3);
    script.release(5);
    script.use(true);
    const EventIndex emptied = script.empty_cache();
    const ReplayResult result = script.replay_under("expandable_segments:True");
    REQUIRE(result.divergence);
    CHECK(result.divergence->kind == Divergence::Kind::kPoolLost);
    CHECK(result.divergence->event == emptied);
}

TEST_CASE("a completely emptied private pool is not lost, for any number of maps") {
    Script script;
    script.use(false);
    for (BlockId block = 1; block < 5; ++block) {
        script.allocate(block, 30);
    }
    for (BlockId block = 1; block < 5; ++block) {
        script.release(block);
    }
    script.use(true);
    script.empty_cache();
    CHECK_FALSE(script.replay_under("expandable_segments:True").divergence);
}

}  // namespace
}  // namespace fragtrace::analyzer
