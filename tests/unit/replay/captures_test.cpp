// Requests within a stream capture: PyTorch releases no cache for them, in any pool.
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/trace/pool_identities.h"
#include "tests/unit/replay/recorder.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace fragtrace::analyzer;
using fragtrace::EventKind;
using fragtrace::kFlagInCapture;
using fragtrace::kFlagOfGraph;

namespace {

constexpr std::uint32_t kPool = 7;

// A trace in which the default pool has cached 60 MiB.
Recorder with_cache() {
    Recorder recorder;
    recorder.timeline.facts = {{"torch_version", "2.15.0"}, {"torch.captures", "recorded"}};
    const EventIndex cached = recorder.add(EventKind::kBlockAlloc, kBase, 60 * kMiB, 60 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 60 * kMiB, 0, cached);
    return recorder;
}

void request(Recorder* recorder, std::uint32_t pool, int flags, std::uint64_t size_mib = 70) {
    recorder->in_pool(pool,
                      EventKind::kBlockAlloc,
                      kBase + (pool + 1) * 1024 * kMiB,
                      size_mib * kMiB,
                      size_mib * kMiB,
                      kNoEvent,
                      static_cast<std::uint8_t>(flags));
}

// Replays it on a card of 100 MiB.
ReplayResult replayed(const Timeline& timeline) {
    const ReplayScript script = make_script(timeline, 0);
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(100 * kMiB, 100 * kMiB, 2 * kMiB),
                          script.streams,
                          script.rules);
    REQUIRE(pool.ok());
    return replay(script, **pool);
}

std::vector<Outcome> troubles_of(const Timeline& timeline) {
    std::vector<Outcome> outcomes;
    for (const Trouble& trouble : replayed(timeline).troubles) {
        outcomes.push_back(trouble.outcome);
    }
    return outcomes;
}

// For each step that reports a use of the pool: whether the pool is a graph's.
std::vector<bool> graph_of_steps(const Timeline& timeline) {
    const ReplayScript script = make_script(timeline, 0);
    std::vector<bool> graph;
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        if (script.steps[i].kind == Step::Kind::kPoolOptions) {
            graph.push_back((script.steps[i].value & kPoolOfGraph) != 0);
        }
    }
    return graph;
}

}  // namespace

TEST_CASE("a request within a capture fails although the cache is full, in any pool") {
    const std::uint32_t pool = GENERATE(0u, kPool);
    Recorder recorder = with_cache();
    recorder.timeline.pools[kPool] = pool_identities({{"pool.7", "pytorch 0,1"}})[kPool];
    request(&recorder, pool, kFlagInCapture);
    CHECK(troubles_of(recorder.timeline) == std::vector{Outcome::kOutOfMemory});
}

TEST_CASE("a request outside of captures releases the cache, in any pool") {
    const char* id = GENERATE("pytorch 0,1", "pytorch 1,0");  // graph trees warm up in (1, 0)
    const std::uint32_t pool = GENERATE(0u, kPool);
    Recorder recorder = with_cache();
    recorder.timeline.pools[kPool] = pool_identities({{"pool.7", id}})[kPool];
    request(&recorder, pool, 0);
    CHECK(troubles_of(recorder.timeline) == std::vector{Outcome::kRetryOk});
}

TEST_CASE("without recorded captures the pool's id decides, before 2.13 any private pool") {
    const std::string id = GENERATE("pytorch 0,1", "pytorch 1,0");
    const std::string release = GENERATE("2.12.0", "2.13.0");
    Recorder recorder = with_cache();
    recorder.timeline.facts = {{"torch_version", release}};
    recorder.timeline.pools[kPool] = pool_identities({{"pool.7", id}})[kPool];
    request(&recorder, kPool, 0);
    const bool releases = id == "pytorch 0,1" && release == "2.13.0";
    CHECK(troubles_of(recorder.timeline) ==
          std::vector{releases ? Outcome::kRetryOk : Outcome::kOutOfMemory});
}

TEST_CASE("a MemPool counts as a graph's pool from its first allocation within a capture") {
    Recorder recorder = with_cache();
    recorder.timeline.pools = pool_identities({{"pool.7", "pytorch 0,1"}, {"pool.7.graph", "1"}});
    CHECK(recorder.timeline.pools[kPool].is_graph());
    request(&recorder, kPool, 0, 3);
    request(&recorder, kPool, kFlagInCapture | kFlagOfGraph, 4);
    request(&recorder, kPool, kFlagInCapture | kFlagOfGraph, 5);
    CHECK(graph_of_steps(recorder.timeline) == std::vector{false, true});
}

TEST_CASE("empty_cache within a capture releases only private pools without users") {
    const std::string release = GENERATE("2.12.0", "2.13.0");  // before 2.13 the call fails
    Recorder recorder = with_cache();
    recorder.timeline.facts["torch_version"] = release;
    recorder.timeline.pools[kPool] = pool_identities({{"pool.7", "pytorch 0,1"}})[kPool];
    const EventIndex block =
        recorder.in_pool(kPool, EventKind::kBlockAlloc, kBase + 1024 * kMiB, 20 * kMiB, 20 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase + 1024 * kMiB, 0, 20 * kMiB, 0, block);
    recorder.in_pool(kPool, EventKind::kPoolRelease, 0, 0);
    recorder.add(EventKind::kEmptyCache, 0, 0, 0, kFlagInCapture);
    CHECK(replayed(recorder.timeline).statistics.reserved.current ==
          (release == "2.13.0" ? 60 : 80) * kMiB);
}
