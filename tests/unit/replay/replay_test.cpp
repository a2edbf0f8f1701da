// From the timeline to the script to the pool: the steps of a replay, and how its agreement is
// measured.
#include "analyzer/commands/replay_options.h"
#include "analyzer/pools/pytorch/known_releases.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/assumptions.h"
#include "analyzer/replay/fidelity.h"
#include "tests/unit/replay/recorder.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace fragtrace::analyzer;
using fragtrace::EventKind;
using fragtrace::kFlagFromAllocator;
using fragtrace::kUnknown64;

namespace {

Fidelity fidelity_of(const Timeline& timeline, const char* config = "") {
    const ReplayScript script = make_script(timeline, 0);
    auto device = std::make_unique<RecordedDevice>(1000 * kMiB, 1000 * kMiB);
    RecordedDevice* recorded = device.get();
    auto pool = make_pool("pytorch", config, std::move(device), script.streams);
    REQUIRE(pool.ok());
    return measure_fidelity(timeline, script, **pool, *recorded);
}

}  // namespace

TEST_CASE("a trace that PyTorch could have made replays at 100 %") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    const EventIndex a = recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kBlockAlloc, kBase + 3 * kMiB, 4 * kMiB - 100, 4 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 3 * kMiB, 0, a);
    recorder.add(EventKind::kBlockAlloc, kBase, 2 * kMiB, 2 * kMiB);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK(fidelity.exact());
    CHECK(fidelity.placements == 3);
    CHECK(fidelity.placements_equal == 3);
    CHECK(fidelity.segments == 1);
    CHECK(fidelity.segments_equal == 1);
}

TEST_CASE("a placement that PyTorch would not have chosen is counted and named") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    recorder.add(EventKind::kBlockAlloc, kBase + 8 * kMiB, 3 * kMiB, 3 * kMiB);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK_FALSE(fidelity.exact());
    CHECK(fidelity.placements_equal == 0);
    CHECK(fidelity.segments_equal == 1);
    CHECK(fidelity.reason.find("event 1") != std::string::npos);
}

TEST_CASE("a cudaMalloc of another size is counted and named") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 22 * kMiB, 0, kFlagFromAllocator);
    recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK(fidelity.segments_equal == 0);
    CHECK_FALSE(fidelity.reason.empty());
}

TEST_CASE("refusals are taken from the trace") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 30 * kMiB, 0, kFlagFromAllocator);
    const EventIndex a = recorder.add(EventKind::kBlockAlloc, kBase, 30 * kMiB, 30 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 30 * kMiB, 0, a);
    // Far below the capacity of the replay's device, but refused: another process used the memory.
    recorder.add(EventKind::kAllocRefused, 0, 40 * kMiB, 2, kFlagFromAllocator);
    recorder.add(EventKind::kDeviceFree, kBase, 0, 0, kFlagFromAllocator, 0);
    recorder.add(EventKind::kDeviceAlloc, kBase, 40 * kMiB, 0, kFlagFromAllocator);
    recorder.add(EventKind::kBlockAlloc, kBase, 40 * kMiB, 40 * kMiB);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK(fidelity.exact());
    CHECK(fidelity.placements_equal == 2);
    CHECK(fidelity.segments_equal == 2);
    const ReplayScript script = make_script(recorder.timeline, 0);
    REQUIRE(script.obtained.size() == 2);
    CHECK(script.obtained[1].request == 6);
    REQUIRE(script.refusals.size() == 1);
    CHECK(script.refusals[0].granted_before == 0);
}

TEST_CASE("expandable segments: pages mapped by one request are one map call") {
    Recorder recorder;
    recorder.add(EventKind::kAddressReserve, kBase, 1140 * kMiB, 0, kFlagFromAllocator);
    for (std::uint64_t page = 0; page < 2; ++page) {
        recorder.add(
            EventKind::kMap, kBase + page * 20 * kMiB, 20 * kMiB, page, kFlagFromAllocator);
    }
    recorder.add(EventKind::kBlockAlloc, kBase, 30 * kMiB, 30 * kMiB);
    recorder.add(EventKind::kMap, kBase + 40 * kMiB, 20 * kMiB, 3, kFlagFromAllocator);
    recorder.add(EventKind::kBlockAlloc, kBase + 30 * kMiB, 30 * kMiB, 30 * kMiB);
    const Fidelity fidelity = fidelity_of(recorder.timeline, "expandable_segments:True");
    CHECK(fidelity.exact());
    CHECK(fidelity.segments == 2);
}

TEST_CASE("expandable segments: the replay refuses the same map call as the recorded run") {
    Recorder recorder;
    const DeviceAddress side = kBase + 2000 * kMiB;
    const std::uint64_t page = 20 * kMiB;
    const auto create = [&](std::uint64_t handle) {
        recorder.add(EventKind::kPhysicalCreate, handle, page, 0, kFlagFromAllocator);
    };
    const auto release = [&](std::uint64_t handle) {
        recorder.add(EventKind::kPhysicalRelease, handle, 0, 0, kFlagFromAllocator);
    };
    // A page's handle is its number in the range, counted from the base.
    const auto map = [&](DeviceAddress base, std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = first; i < first + count; ++i) {
            create(base / page + i);
        }
        for (std::uint64_t i = first; i < first + count; ++i) {
            recorder.add(
                EventKind::kMap, base + i * page, page, base / page + i, kFlagFromAllocator);
        }
    };
    const auto unmap = [&](DeviceAddress base, std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t i = first; i < first + count; ++i) {
            recorder.add(EventKind::kUnmap, base + i * page, page, 0, kFlagFromAllocator);
            release(base / page + i);
        }
    };
    const auto refuse_after = [&](std::uint64_t pages) {
        for (std::uint64_t i = 0; i < pages; ++i) {
            create(i + 1);
        }
        recorder.add(EventKind::kAllocRefused, 0, page, 2, kFlagFromAllocator);
        for (std::uint64_t i = 0; i < pages; ++i) {
            release(i + 1);
        }
    };
    const auto block = [&](DeviceAddress address, std::uint64_t mib, StreamId stream = 0) {
        const EventIndex index =
            recorder.add(EventKind::kBlockAlloc, address, mib * kMiB, mib * kMiB);
        recorder.change_last([&](Event* event) { event->stream = stream; });
        return index;
    };
    const auto free = [&](EventIndex alloc) {
        recorder.add(
            EventKind::kBlockFree, recorder.timeline.events.address(alloc), 0, 0, 0, alloc);
    };

    recorder.add(EventKind::kAddressReserve, kBase, 1140 * kMiB, 0, kFlagFromAllocator);
    map(kBase, 0, 1);
    const EventIndex a = block(kBase, 20);
    map(kBase, 1, 3);
    const EventIndex b = block(kBase + page, 60);
    map(kBase, 4, 1);
    const EventIndex c = block(kBase + 4 * page, 20);
    recorder.add(EventKind::kAddressReserve, side, 1140 * kMiB, 0, kFlagFromAllocator);
    map(side, 0, 30);
    const EventIndex d = block(side, 600, 1);
    free(a);
    recorder.add(EventKind::kEmptyCache, 0, 0);
    unmap(kBase, 0, 1);
    free(b);
    free(c);
    free(d);
    // The request maps the hole before the free block. Then too little is left after the block.
    map(kBase, 0, 1);
    refuse_after(5);
    // The cache is released. The range without pages is freed, and the retry reserves another one.
    unmap(kBase, 0, 5);
    recorder.add(EventKind::kAddressFree, kBase, 1140 * kMiB, 0, kFlagFromAllocator);
    unmap(side, 0, 30);
    recorder.add(EventKind::kAddressFree, side, 1140 * kMiB, 0, kFlagFromAllocator);
    recorder.add(EventKind::kAddressReserve, kBase, 1140 * kMiB, 0, kFlagFromAllocator);
    SECTION("the retry is granted") {
        map(kBase, 0, 20);
        block(kBase, 400);
    }
    SECTION("the retry is refused too") {
        refuse_after(15);
        recorder.add(EventKind::kBlockOutOfMemory, 0, 400 * kMiB);
        recorder.change_last([](Event* event) { event->stream = 0; });
        map(kBase, 0, 1);
        block(kBase, 20);
    }
    const ReplayScript script = make_script(recorder.timeline, 0);
    REQUIRE_FALSE(script.refusals.empty());
    CHECK(script.refusals.front().granted_before == 1);
    const Fidelity fidelity = fidelity_of(recorder.timeline, "expandable_segments:True");
    INFO(fidelity.reason);
    CHECK(fidelity.exact());
    CHECK(fidelity.placements_equal == 5);
    CHECK(fidelity.segments_equal == 6);
}

TEST_CASE("assumptions made for a script are counted") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    recorder.add(EventKind::kBlockAlloc, kBase, kUnknown64, 3 * kMiB);
    recorder.change_last([&](Event* event) { event->stream = kNoStream; });
    const ReplayScript script = make_script(recorder.timeline, 0);
    CHECK(script.requested_unknown == 1);
    CHECK(script.stream_unknown == 1);
    REQUIRE(script.steps.size() == 1);
    CHECK(script.steps[0].value == 3 * kMiB);
}

TEST_CASE("without a caching pool the device allocations are the requests") {
    Recorder recorder;
    const EventIndex a = recorder.add(EventKind::kDeviceAlloc, kBase, 5 * kMiB);
    recorder.add(EventKind::kDeviceAlloc, kBase + 8 * kMiB, 7 * kMiB);
    recorder.add(EventKind::kDeviceFree, kBase, 0, 0, 0, a);
    const ReplayScript script = make_script(recorder.timeline, 0);
    CHECK(script.source == ScriptSource::kDeviceLayer);
    REQUIRE(script.steps.size() == 3);
    CHECK(script.steps[2].kind == Step::Kind::kRelease);
    CHECK(script.steps[2].block == a);
}

TEST_CASE("a request that failed only in the trace is freed at once") {
    Recorder recorder;
    recorder.add(EventKind::kAllocRefused, 0, 256 * kMiB, 2, kFlagFromAllocator);
    recorder.add(EventKind::kBlockOutOfMemory, 0, 256 * kMiB, 0);
    const ReplayScript script = make_script(recorder.timeline, 0);
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                          script.streams);
    REQUIRE(pool.ok());
    const ReplayResult result = replay(script, **pool);
    CHECK(result.troubles.empty());
    CHECK(result.statistics.allocated.peak == 256 * kMiB);
    CHECK(result.statistics.allocated.current == 0);
}

TEST_CASE("empty_cache is a step on every device, even if it frees nothing") {
    Recorder recorder;
    recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kEmptyCache, 0, 0);
    recorder.change_last(
        [&](Event* event) { event->device = kMaxDevices & 31u; });  // the event names no device
    const ReplayScript script = make_script(recorder.timeline, 0);
    REQUIRE(script.steps.size() == 2);
    CHECK(script.steps[1].kind == Step::Kind::kEmptyCache);
}

TEST_CASE("blocks of a private pool are replayed into its own segments") {
    Recorder recorder;
    const auto segment = [&](DeviceAddress address) {
        recorder.add(EventKind::kDeviceAlloc, address, 20 * kMiB, 0, kFlagFromAllocator);
    };
    segment(kBase);
    const EventIndex a = recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 3 * kMiB, 0, a);
    recorder.in_pool(2, EventKind::kPoolUse, 0, 1);
    // The default pool has room, but a private pool does not use it.
    segment(kBase + 32 * kMiB);
    const EventIndex b =
        recorder.in_pool(2, EventKind::kBlockAlloc, kBase + 32 * kMiB, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kBlockAlloc, kBase, 2 * kMiB, 2 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase + 32 * kMiB, 0, 3 * kMiB, 0, b);
    recorder.in_pool(2, EventKind::kBlockAlloc, kBase + 32 * kMiB, 1 * kMiB + 512, 1 * kMiB + 512);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK(fidelity.exact());
    CHECK(fidelity.placements == 4);
    CHECK(fidelity.segments == 2);
}

TEST_CASE("a private pool releases memory only after its last user has ended") {
    const bool released = GENERATE(false, true);
    const bool by_its_own_call = GENERATE(false, true);
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    const EventIndex a = recorder.in_pool(7, EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 3 * kMiB, 0, a);
    if (released) {
        recorder.in_pool(7, EventKind::kPoolRelease, 0, 0);
    }
    recorder.in_pool(by_its_own_call ? 7 : 0, EventKind::kEmptyCache, 0, 0);
    const ReplayScript script = make_script(recorder.timeline, 0);
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                          script.streams);
    REQUIRE(pool.ok());
    CHECK(replay(script, **pool).statistics.reserved.current == (released ? 0 : 20 * kMiB));
}

TEST_CASE("a rewound pool has the recorded blocks at their old places") {
    Recorder recorder;
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    const auto block = [&](std::uint64_t at, std::uint64_t size) {
        return recorder.in_pool(
            3, EventKind::kBlockAlloc, kBase + at * kMiB, size * kMiB, size * kMiB);
    };
    const EventIndex a = block(0, 4);
    const EventIndex b = block(4, 3);
    block(7, 2);
    recorder.add(EventKind::kBlockFree, kBase, 0, 4 * kMiB, 0, a);
    recorder.add(EventKind::kBlockFree, kBase + 4 * kMiB, 0, 3 * kMiB, 0, b);
    const EventIndex c = block(0, 4);
    const EventIndex e = block(4, 2);  // at the place of the 3, not in the checkpoint
    recorder.in_pool(3, EventKind::kPoolRewind, 0, 0);
    // Only the second block becomes live again. Its request is known from before.
    const EventIndex again =
        recorder.in_pool(3, EventKind::kBlockAlloc, kBase + 4 * kMiB, kUnknown64, 3 * kMiB);
    const EventIndex d = block(9, 5);
    static_cast<void>(c);
    static_cast<void>(d);
    static_cast<void>(e);
    recorder.add(EventKind::kEmptyCache, 0, 0);
    recorder.add(EventKind::kBlockFree, kBase + 4 * kMiB, 0, 3 * kMiB, 0, again);
    const ReplayScript script = make_script(recorder.timeline, 0);
    CHECK(script.rewinds == 1);
    CHECK(script.requested_unknown == 0);
    auto pool = make_pool("pytorch",
                          "",
                          std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                          script.streams);
    REQUIRE(pool.ok());
    std::vector<std::uint64_t> live;
    ReplayHooks hooks;
    hooks.before_step = [&](std::size_t step, Pool& driven) {
        if (script.steps[step].kind == Step::Kind::kEmptyCache) {
            const HeapSnapshot heap = driven.snapshot();
            for (const HeapBlock& one : heap.blocks) {
                live.push_back(one.state == BlockState::kLive ? one.size_bytes / kMiB : 0);
            }
        }
        return true;
    };
    const ReplayResult result = replay(script, **pool, nullptr, hooks);
    // 4 free, the 3 at their old place, then the 5 in the rest, since their place was unknown.
    CHECK(live == std::vector<std::uint64_t>{0, 3, 5, 0});
    CHECK(result.statistics.allocated.current == 5 * kMiB);
}

TEST_CASE("changes of settings at run time are applied, for any initial settings") {
    Recorder recorder;
    recorder.timeline.facts["text.4"] = "roundup_power2_divisions:1,max_split_size_mb:40";
    recorder.timeline.facts["text.5"] = "expandable_segments:True";
    recorder.add(EventKind::kSettings, 0, 4);
    recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kSettings, 0, 5);
    recorder.add(EventKind::kSettings, 0, 99);  // no such text, so no settings
    recorder.add(EventKind::kBlockAlloc, kBase + 64 * kMiB, 30 * kMiB, 30 * kMiB);
    const ReplayScript script = make_script(recorder.timeline, 0);
    CHECK(script.first_settings == recorder.timeline.facts["text.4"]);
    REQUIRE(script.settings.size() == 2);
    const std::string begin = GENERATE("", "roundup_power2_divisions:4");
    auto pool = make_pool("pytorch",
                          begin,
                          std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                          script.streams);
    REQUIRE(pool.ok());
    replay(script, **pool);
    // Earlier settings only stay if the change does not name them.
    CHECK((*pool)->config() == "expandable_segments:True");
    bool expandable = false;
    for (const HeapSegment& segment : (*pool)->snapshot().segments) {
        expandable = expandable || segment.expandable;
    }
    CHECK(expandable);
}

TEST_CASE("settings of a replay replace the initial ones, later changes still apply") {
    Recorder recorder;
    recorder.timeline.facts["text.4"] = "max_split_size_mb:40";
    recorder.timeline.facts["text.5"] = "garbage_collection_threshold:0.5";
    recorder.add(EventKind::kSettings, 0, 4);
    recorder.add(EventKind::kBlockAlloc, kBase, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kSettings, 0, 5);
    recorder.add(EventKind::kBlockAlloc, kBase + 64 * kMiB, 30 * kMiB, 30 * kMiB);
    const ReplayScript script = make_script(recorder.timeline, 0);
    DeviceAnalysis recorded;
    recorded.pool = "pytorch";
    recorded.config = *script.first_settings;
    ReplayOptions options;
    CHECK(options.candidate(recorded, std::nullopt).config == "max_split_size_mb:40");
    options.config = "roundup_power2_divisions:4";
    options.config_given = true;
    const Candidate candidate = options.candidate(recorded, std::nullopt);
    auto pool = make_pool(candidate.pool,
                          candidate.config,
                          std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                          script.streams);
    REQUIRE(pool.ok());
    std::vector<std::string> in_force;
    ReplayHooks hooks;
    hooks.after_request = [&in_force](std::size_t, const AllocateResult&, Pool& driven) {
        in_force.push_back(driven.config());
    };
    replay(script, **pool, nullptr, hooks);
    REQUIRE(in_force.size() == 2);
    CHECK(in_force[0] == "roundup_power2_divisions:4");
    CHECK(in_force[1].find("garbage_collection_threshold:0.5") != std::string::npos);
    CHECK(in_force[1].find("max_split_size") == std::string::npos);
}

TEST_CASE("the replay uses the rules of the recorded release") {
    Recorder recorder;
    recorder.timeline.facts["torch_version"] = "2.6.0+cu124";
    CHECK(make_script(recorder.timeline, 0).rules.tie_break == PytorchRules::TieBreak::kAddress);
    recorder.timeline.facts["torch_version"] = "2.15.0";
    CHECK(make_script(recorder.timeline, 0).rules.tie_break ==
          PytorchRules::TieBreak::kRegistration);
    CHECK(PytorchRules::for_release("unknown").tie_break == PytorchRules::TieBreak::kRegistration);
    CHECK(PytorchRules::for_release("1.13.1").one_division_rounds_nothing);
    CHECK_FALSE(PytorchRules::is_release("2."));
}

TEST_CASE(
    "a release that was never compared with a real run is named with the rules that it gets") {
    for (const char* release : {"2.0.1", "2.6.0+cu124", "2.15.0", "", "unknown"}) {
        CHECK(doubt_about_release(release).empty());
    }
    CHECK(doubt_about_release("99.1") ==
          "the rules of PyTorch 99.1 are not known: its replay follows those of 2.15");
    CHECK(doubt_about_release("2.16.0a0").find("2.16 are not known") != std::string::npos);
    CHECK(doubt_about_release("1.13.1").find("those of 2.0") != std::string::npos);
}

TEST_CASE("a trace that begins in mid-life replays from its live blocks") {
    Recorder recorder;
    recorder.timeline.checkpoints.push_back({0, 0});
    recorder.add(EventKind::kCheckpointBegin, 0, 0);
    const auto segment = [&](DeviceAddress address, std::uint64_t obtained_ns) {
        recorder.add(EventKind::kDeviceAlloc, address, 20 * kMiB, 0, kFlagFromAllocator);
        recorder.change_last([&](Event* event) { event->time_ns = obtained_ns; });
    };
    // Listed in another order than that of allocation, which decides between equal blocks.
    segment(kBase, 20);
    segment(kBase + 32 * kMiB, 10);
    const EventIndex a = recorder.add(EventKind::kBlockAlloc, kBase, 4 * kMiB, 4 * kMiB);
    recorder.add(EventKind::kBlockAlloc, kBase + 32 * kMiB, 4 * kMiB, 4 * kMiB);
    recorder.timeline.checkpoints[0].end = recorder.add(EventKind::kCheckpointEnd, 0, 0);
    recorder.add(EventKind::kBlockAlloc, kBase + 36 * kMiB, 2 * kMiB, 2 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 4 * kMiB, 0, a);
    recorder.add(EventKind::kBlockAlloc, kBase, 18 * kMiB, 20 * kMiB);
    recorder.change_last([&](Event* event) { event->extra = 18 * kMiB; });
    const ReplayScript script = make_script(recorder.timeline, 0);
    REQUIRE(script.checkpoints.size() == 1);
    const Fidelity fidelity = fidelity_of(recorder.timeline);
    CHECK(fidelity.placements == 2);
    CHECK(fidelity.placements_equal == 2);
    CHECK(fidelity.segments == 0);
    CHECK(fidelity.exact());
    SECTION("the live blocks do not fit") {
        auto pool = make_pool("pytorch",
                              "",
                              std::make_unique<FixedDevice>(30 * kMiB, 30 * kMiB, 2 * kMiB),
                              script.streams);
        REQUIRE(pool.ok());
        const ReplayResult result = replay(script, **pool);
        REQUIRE(result.troubles.size() == 1);
        CHECK(result.troubles[0].requested_bytes == 40 * kMiB);
        CHECK(result.requests_served == 0);
    }
}

TEST_CASE("each cross-stream free waits for its own events") {
    Recorder recorder;
    for (const std::uint64_t event : {0xe1, 0xe2, 0xe3}) {
        const EventIndex block = recorder.add(EventKind::kBlockAlloc, kBase, kMiB, kMiB);
        recorder.add(EventKind::kBlockFree, kBase, 0, kMiB, fragtrace::kFlagPending, block);
        recorder.add(EventKind::kPendingEvent, kBase, 0, event);
        recorder.add(EventKind::kPendingEvent, kBase, 0, event + 0x10);
    }
    const ReplayScript script = make_script(recorder.timeline, 0);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;  // first, count
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kRelease) {
            waits.emplace_back(step.first_pending, step.pending_count);
        }
    }
    CHECK(waits == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 2}, {2, 2}, {4, 2}});
}

TEST_CASE("pending blocks of a checkpoint are freed once their events have completed") {
    Recorder recorder;
    recorder.timeline.checkpoints.push_back({0, 5});
    recorder.add(EventKind::kCheckpointBegin, 0, 0);
    recorder.add(EventKind::kDeviceAlloc, kBase, 20 * kMiB, 0, kFlagFromAllocator);
    const EventIndex a = recorder.add(EventKind::kBlockAlloc, kBase, 4 * kMiB, 4 * kMiB);
    recorder.add(EventKind::kBlockFree, kBase, 0, 4 * kMiB, fragtrace::kFlagPending, a);
    recorder.add(EventKind::kPendingEvent, kBase, 0, 0xe1);
    recorder.add(EventKind::kCheckpointEnd, 0, 0);
    recorder.add(EventKind::kBlockAlloc, kBase + 4 * kMiB, 3 * kMiB, 3 * kMiB);
    recorder.add(EventKind::kEventComplete, 0, 0, 0xe1);
    recorder.add(EventKind::kBlockAlloc, kBase, 2 * kMiB, 2 * kMiB);
    CHECK(fidelity_of(recorder.timeline).exact());
}

TEST_CASE("cross-stream frees can be assumed to complete at once or as late as possible") {
    ReplayScript script;
    script.streams = {0, 7};
    script.pending = {{1, 1}};
    const std::vector<Step> steps = {
        {.event = 0, .block = 0, .value = 30 * kMiB},
        {.kind = Step::Kind::kRelease, .event = 1, .block = 0, .pending_count = 1},
        {.event = 2, .block = 2, .value = 30 * kMiB},
        {.kind = Step::Kind::kComplete, .event = 3, .value = 1},
        {.event = 4, .block = 4, .value = 30 * kMiB},
        {.event = 5, .block = 5, .value = 30 * kMiB},
    };
    // The segments after the first `count` steps.
    const auto segments = [&](PendingRule rule, std::size_t count) {
        ReplayScript assumed = script;
        for (std::size_t i = 0; i < count; ++i) {
            assumed.steps.push_back(steps[i]);
        }
        assume_pending(rule, &assumed);
        auto pool = make_pool("pytorch",
                              "",
                              std::make_unique<FixedDevice>(1000 * kMiB, 1000 * kMiB, 2 * kMiB),
                              assumed.streams);
        REQUIRE(pool.ok());
        return replay(assumed, **pool).statistics.segments_allocated;
    };
    CHECK(segments(PendingRule::kRecorded, 6) == 3);
    CHECK(segments(PendingRule::kAtOnce, 6) == 3);
    CHECK(segments(PendingRule::kNever, 6) == 4);
    CHECK(segments(PendingRule::kRecorded, 4) == 2);
    CHECK(segments(PendingRule::kAtOnce, 4) == 1);
}

TEST_CASE("without a framework's pool stream-ordered allocations are requests") {
    Recorder recorder;
    const EventIndex a = recorder.add(EventKind::kAsyncAlloc, kBase, 5 * kMiB);
    recorder.add(EventKind::kAsyncAlloc, kBase + 8 * kMiB, 7 * kMiB);
    const EventIndex managed = recorder.add(EventKind::kManagedAlloc, kBase + 64 * kMiB, kMiB);
    recorder.add(EventKind::kAsyncFree, kBase, 0, 0, 0, a);
    recorder.add(EventKind::kDeviceFree, kBase + 64 * kMiB, 0, 0, 0, managed);
    CHECK(replayable_devices(recorder.timeline) == std::vector<DeviceId>{0});
    const ReplayScript script = make_script(recorder.timeline, 0);
    CHECK(script.source == ScriptSource::kDeviceLayer);
    CHECK(script.stream_ordered == 2);
    REQUIRE(script.steps.size() == 3);
    CHECK(script.steps[2].block == a);
}
