// The bound "offline": a plan for a script's lifetimes, then a replay that the independent check
// verifies.
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script_plan.h"
#include "analyzer/replay/validation/replay_check.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

#include <functional>
#include <random>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kCapacityBytes = 64 * kGiB;

std::unique_ptr<Pool> make(const ReplayScript& script,
                           std::string_view name,
                           std::string_view config = "",
                           std::uint64_t capacity_bytes = kCapacityBytes) {
    auto pool = make_pool_for(
        script,
        name,
        config,
        std::make_unique<FixedDevice>(capacity_bytes, capacity_bytes, std::uint64_t{2} << 20));
    REQUIRE(pool.ok());
    return std::move(pool).value();
}

std::uint64_t peak(const ReplayScript& script,
                   std::string_view name,
                   std::string_view config = "") {
    const auto pool = make(script, name, config);
    const ReplayResult result = replay(script, *pool);
    CHECK(result.troubles.empty());
    return result.statistics.reserved.peak;
}

class Script {
  public:
    Script() { script.streams = {0, 1}; }

    BlockId allocate(std::uint64_t bytes, StreamId stream = 0, std::uint32_t private_pool = 0) {
        script.steps.push_back({.stream = stream,
                                .event = next_,
                                .block = next_,
                                .private_pool = private_pool,
                                .value = bytes});
        return next_++;
    }

    void fail(std::uint64_t bytes) {
        allocate(bytes);
        change_last([](Step* step) { step->recorded_oom = true; });
    }

    void change_last(const std::function<void(Step*)>& change) {
        Step step = script.steps.back();
        change(&step);
        script.steps.set(script.steps.size() - 1, step);
    }

    void release(BlockId block, std::uint32_t events = 0) {
        Step step{.kind = Step::Kind::kRelease, .block = block};
        step.first_pending = static_cast<std::uint32_t>(script.pending.size());
        step.pending_count = events;
        while (events-- != 0) {
            script.pending.push_back({next_event_++, 1});
        }
        script.steps.push_back(step);
    }

    void complete(PendingId event) {
        script.steps.push_back({.kind = Step::Kind::kComplete, .value = event});
    }

    void graph(std::uint32_t private_pool, bool freeable = false) {
        script.steps.push_back({.kind = Step::Kind::kPoolOptions,
                                .private_pool = private_pool,
                                .value = kPoolOfGraph | (freeable ? kPoolFreeable : 0)});
    }

    ReplayScript script;

  private:
    BlockId next_ = 0;
    PendingId next_event_ = 1;
};

TEST_CASE("on random scripts a plan keeps blocks apart and reserves at least live and compact") {
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        Script made;
        std::vector<BlockId> live;
        PendingId events = 0;
        made.graph(7);
        for (int i = 0; i < 300; ++i) {
            if (live.empty() || random() % 5 < 3) {
                live.push_back(made.allocate(1 + random() % (1u << random() % 25),
                                             static_cast<StreamId>(random() % 2),
                                             random() % 6 == 0 ? 7 : 0));
            } else {
                const std::size_t at = random() % live.size();
                const std::uint32_t waits = random() % 4 == 0 ? 1 + random() % 2 : 0;
                made.release(live[at], waits);
                events += waits;
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
            }
            if (events != 0 && random() % 4 == 0) {
                made.complete(1 + random() % events);
            }
            if (i == 200) {
                made.graph(7, true);
            }
        }
        Script one = made;  // the script as one_stream:True sees it
        for (std::size_t i = 0; i < one.script.steps.size(); ++i) {
            Step step = one.script.steps[i];
            step.stream = 0;
            one.script.steps.set(i, step);
        }
        for (const ReplayScript* script : {&made.script, &one.script}) {
            const auto pool = make(*script, "offline");
            const ReplayCheck check =
                check_replay(*script, *pool, StreamRule::kSegments, kCapacityBytes);
            INFO(check.violation);
            REQUIRE(check.violation.empty());
            REQUIRE(check.result.troubles.empty());
            const std::uint64_t offline = check.result.statistics.reserved.peak;
            CHECK(peak(*script, "live") <= offline);
            CHECK(peak(*script, "compact") <= offline);
        }
        CHECK(peak(made.script, "offline", "one_stream:True") == peak(one.script, "offline"));
    }
}

TEST_CASE("blocks that wait for other streams keep their place until the last event") {
    Script made;
    const BlockId first = made.allocate(4 * kMiB);
    made.release(first, 2);
    made.complete(1);
    made.release(made.allocate(4 * kMiB));
    made.complete(2);
    made.release(made.allocate(4 * kMiB));
    CHECK(peak(made.script, "offline") == 8 * kMiB);
}

TEST_CASE("streams share no memory, unless one_stream is set") {
    Script made;
    made.release(made.allocate(4 * kMiB, 0));
    made.release(made.allocate(4 * kMiB, 1));
    CHECK(peak(made.script, "offline") == 8 * kMiB);
    CHECK(peak(made.script, "offline", "one_stream:True") == 4 * kMiB);
}

TEST_CASE("a graph's pool reuses its own memory and stays reserved until its last user ends") {
    for (const bool freed : {false, true}) {
        Script made;
        made.graph(3);
        made.release(made.allocate(4 * kMiB, 0, 3));
        made.release(made.allocate(4 * kMiB, 0, 3));
        if (freed) {
            made.graph(3, true);
        }
        made.release(made.allocate(4 * kMiB));
        CHECK(peak(made.script, "offline") == (freed ? 4 : 8) * kMiB);
        CHECK(peak(made.script, "live") == (freed ? 4 : 8) * kMiB);
    }
}

TEST_CASE("a block restored by a pool's checkpoint keeps its address") {
    Script made;
    made.script.rewinds = 1;
    made.graph(3);
    made.allocate(2 * kMiB, 0, 3);
    const BlockId former = made.allocate(2 * kMiB, 0, 3);
    made.release(former);
    made.release(made.allocate(2 * kMiB, 0, 3));
    const BlockId again = made.allocate(2 * kMiB, 0, 3);
    made.change_last([former](Step* step) {
        step->kind = Step::Kind::kPlace;
        step->placed_as = former;
    });
    const auto pool = make(made.script, "offline");
    std::optional<Placement> before;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t, Pool& at) {
        before = at.find(former) ? at.find(former) : before;
        return true;
    };
    replay(made.script, *pool, nullptr, hooks);
    REQUIRE(before);
    REQUIRE(pool->find(again));
    CHECK(pool->find(again)->offset_bytes == before->offset_bytes);
}

TEST_CASE("a failed request is included in the plan if there is room") {
    Script made;
    made.allocate(4 * kMiB);
    made.fail(6 * kMiB);
    made.allocate(2 * kMiB);
    CHECK(peak(made.script, "offline") == 10 * kMiB);
    const auto pool = make(made.script, "offline", "", 8 * kMiB);
    const ReplayResult result = replay(made.script, *pool);
    CHECK(result.statistics.reserved.peak == 6 * kMiB);
    REQUIRE(result.troubles.size() == 1);
    CHECK(result.troubles[0].outcome == Outcome::kOutOfMemory);
    CHECK(result.troubles[0].requested_bytes == 6 * kMiB);
}

TEST_CASE("blocks listed in a checkpoint are planned from there on") {
    Script made;
    made.script.checkpoints.resize(1);
    made.allocate(6 * kMiB);
    made.script.steps.push_back({.kind = Step::Kind::kAdopt, .value = 0});
    made.script.checkpoints[0].segments = {
        {.size_bytes = 20 * kMiB, .first_block = 0, .block_count = 2, .stream = 0}};
    made.script.checkpoints[0].blocks = {{.size_bytes = 4 * kMiB,
                                          .requested_bytes = 4 * kMiB,
                                          .allocated_by = 1000,
                                          .stream = 0,
                                          .state = BlockState::kLive},
                                         {.size_bytes = 16 * kMiB}};
    const BlockId last = made.allocate(2 * kMiB);
    made.release(1000);
    made.release(last);
    const auto pool = make(made.script, "offline");
    const ReplayCheck check =
        check_replay(made.script, *pool, StreamRule::kSegments, kCapacityBytes);
    CHECK(check.violation.empty());
    CHECK(check.result.troubles.empty());
    CHECK(check.result.statistics.reserved.peak == 6 * kMiB);
}

TEST_CASE("offline accepts only the setting one_stream") {
    const Script made;
    const auto wrong = make_pool_for(
        made.script, "offline", "foo:1", std::make_unique<FixedDevice>(kGiB, kGiB, 512));
    REQUIRE_FALSE(wrong.ok());
    CHECK(wrong.error().code == ErrorCode::kUsage);
    CHECK(wrong.error().message == "pool 'offline' has one setting, one_stream:True, got 'foo:1'");
}

}  // namespace
}  // namespace fragtrace::analyzer
