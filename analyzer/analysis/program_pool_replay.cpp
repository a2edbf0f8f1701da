#include "analyzer/analysis/program_pool_replay.h"

#include "analyzer/analysis/whatif/script_change.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Key = ProgramPoolWalk::Key;
using PoolStep = ProgramPoolWalk::Step;

constexpr std::uint64_t kPoolQuantumBytes = 256;  // of the pools of RMM and of bfc

// Refusals of the driver on one device, in the order of the trace.
std::vector<std::pair<EventIndex, std::uint64_t>> refusals_of(const Timeline& timeline,
                                                              DeviceId device) {
    std::vector<std::pair<EventIndex, std::uint64_t>> refusals;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (timeline.events.kind(i) == EventKind::kAllocRefused) {
            const Event event = timeline.events[i];
            if (static_cast<DeviceId>(event.device) == device) {
                refusals.emplace_back(i, event.size_bytes);
            }
        }
    }
    return refusals;
}

// Why the placements of the pool cannot be compared; empty if they can.
std::string why_not_compared(const Key& key, const ProgramPoolWalk& walk, const ProgramPool& pool) {
    if (key.memory == PoolMemory::kUnknown) {
        return "the memory of the pool was not recorded";
    }
    if (key.number == kPoolOfTheRest) {
        return "this entry stands for several pools";
    }
    if (pool.shares_memory) {
        return "other pools use the same memory";
    }
    return std::string(walk.not_comparable(key));
}

void measure(const Timeline& timeline,
             const Key& key,
             const ProgramPoolWalk& walk,
             const ReplayScript& script,
             ProgramPool* pool) {
    const std::vector<ProgramPoolWalk::SegmentOfPool>& segments = walk.segments(key);
    const SimulatedSettings settings =
        own_settings(*pool, first_segment_bytes(key, walk), pool->limit_bytes);
    auto device = std::make_unique<RecordedDevice>(settings.total_bytes, kUnlimitedBytes);
    RecordedDevice& recorded = *device;
    auto simulated = make_pool(pool->kind, settings.config, std::move(device), script.streams);
    if (!simulated) {
        Fidelity fidelity;
        fidelity.not_judged = "the recorded settings of the pool are not understood";
        pool->fidelity = std::move(fidelity);
        return;
    }
    std::vector<RecordedSegmentCall> calls;
    calls.reserve(segments.size());
    for (const ProgramPoolWalk::SegmentOfPool& segment : segments) {
        calls.push_back(
            {DriverCall::Kind::kSegmentAlloc, segment.size_bytes, segment.allocated_by});
    }
    ReplayResult result;
    Fidelity fidelity = compare_replay(
        timeline,
        script,
        {.segments = calls, .place = places_of(timeline, key, walk), .chooses = true},
        **simulated,
        recorded,
        &result);
    fidelity.not_judged = why_not_compared(key, walk, *pool);
    pool->replays.push_back({.pool = pool->kind,
                             .config = settings.config,
                             .peak_reserved_bytes = result.statistics.reserved.peak,
                             .exact = fidelity.exact()});
    pool->fidelity = std::move(fidelity);
}

// Whether the pool serves requests from both ends of its memory. Requests show it.
bool is_partitioned(const ReplayScript& script) {
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        if (script.steps[i].upper_end) {
            return true;
        }
    }
    return false;
}

}  // namespace

ReplayScript script_of(const Timeline& timeline, const Key& key, const ProgramPoolWalk& walk) {
    ReplayScript script;
    script.source = ScriptSource::kBlocks;
    script.device = key.device;
    script.streams = timeline.streams;
    const auto zero = std::find(script.streams.begin(), script.streams.end(), 0u);
    const auto default_stream = static_cast<StreamId>(zero - script.streams.begin());
    if (zero == script.streams.end()) {
        script.streams.push_back(0);
    }
    const auto refusals = refusals_of(timeline, key.device);
    std::size_t next_refusal = 0;
    for (const PoolStep& done : walk.steps(key)) {
        Step step{.event = done.event, .block = done.alloc};
        switch (done.kind) {
            case PoolStep::Kind::kAlloc:
            case PoolStep::Kind::kFailed: {
                const Event request = timeline.events[done.event];
                step.kind = Step::Kind::kAllocate;
                step.block = done.event;
                step.recorded_oom = done.kind == PoolStep::Kind::kFailed;
                step.upper_end = (request.flags & kFlagUpperEnd) != 0;
                step.value = request.size_bytes == kUnknown64 || request.size_bytes == 0
                                 ? request.extra
                                 : request.size_bytes;
                step.stream = request.stream == kNoStream ? default_stream : request.stream;
                if (step.recorded_oom && (request.size_bytes == kUnknown64 || step.value == 0)) {
                    continue;
                }
                // What the driver refused since the pool's last step, it refused for this request.
                step.first_refusal = static_cast<std::uint32_t>(script.refusals.size());
                for (; next_refusal < refusals.size() && refusals[next_refusal].first < done.event;
                     ++next_refusal) {
                    script.refusals.push_back({refusals[next_refusal].second, 0});
                }
                step.refusal_count =
                    static_cast<std::uint32_t>(script.refusals.size()) - step.first_refusal;
                break;
            }
            case PoolStep::Kind::kFree:
                step.kind = Step::Kind::kRelease;
                break;
            case PoolStep::Kind::kStreamEnd:
                step = {.kind = Step::Kind::kStreamEnd,
                        .stream = timeline.events[done.event].stream,
                        .event = done.event};
                break;
            case PoolStep::Kind::kSegmentFree:
                step = {.kind = Step::Kind::kEmptyCache, .event = done.event};
                break;
        }
        script.steps.push_back(step);
    }
    return script;
}

RecordedPlace places_of(const Timeline& timeline, const Key& key, const ProgramPoolWalk& walk) {
    return [&timeline,
            &steps = walk.steps(key),
            &segments = walk.segments(key),
            next = std::size_t{0}](EventIndex event) mutable -> std::optional<RecordedPlacement> {
        while (next < steps.size() && steps[next].event < event) {
            ++next;
        }
        // The blocks that a new one overlaps are freed in the same event, before it.
        std::size_t at = next;
        while (at < steps.size() && steps[at].event == event &&
               steps[at].kind != PoolStep::Kind::kAlloc) {
            ++at;
        }
        if (at == steps.size() || steps[at].event != event || steps[at].segment == kUnknown32) {
            return std::nullopt;
        }
        const std::uint32_t segment = steps[at].segment;
        return RecordedPlacement{segment,
                                 timeline.events.address(event) - segments[segment].address};
    };
}

std::uint64_t first_segment_bytes(const Key& key, const ProgramPoolWalk& walk) {
    return walk.segments(key).empty() ? 0 : walk.segments(key).front().size_bytes;
}

SimulatedSettings settings_of(const std::string& simulated,
                              std::uint64_t first_segment_bytes,
                              std::uint64_t limit_bytes) {
    const bool limited = limit_bytes != 0 && limit_bytes != kUnknown64;
    const std::uint64_t initial = round_up(first_segment_bytes, kPoolQuantumBytes);
    SimulatedSettings settings{.config = "", .total_bytes = kUnlimitedBytes};
    if (simulated == "cupy" && limited) {
        settings.config = "limit:" + std::to_string(limit_bytes);
    } else if (simulated == "bfc") {
        // A pool whose first region is as large as its limit was reserved as a whole.
        const bool whole = limited && first_segment_bytes == limit_bytes;
        settings.config = whole ? "preallocate:1" : "preallocate:0,limit:1";
        settings.total_bytes = limited ? limit_bytes : kUnlimitedBytes;
    } else if (simulated == "rmm-pool") {
        settings.config = "initial_pool_size:" + std::to_string(initial);
        const std::uint64_t most = limit_bytes / kPoolQuantumBytes * kPoolQuantumBytes;
        if (limited && most >= initial && most != 0) {
            settings.config += ",maximum_pool_size:" + std::to_string(most);
        }
    } else if (simulated == "rmm-arena") {
        settings.config = "arena_size:" + std::to_string(std::max(initial, kMiB));
    }
    return settings;
}

SimulatedSettings own_settings(const ProgramPool& pool,
                               std::uint64_t first_segment_bytes,
                               std::uint64_t limit_bytes) {
    // A pool of BFC that grows has a limit of its own, as a share of the card.
    const bool grows =
        pool.kind == "bfc" && pool.settings.find("preallocate:0") != std::string::npos;
    const bool limited = limit_bytes != 0 && limit_bytes != kUnknown64;
    if (pool.settings.empty() || !(limited || grows)) {
        const bool whole = pool.is_limited() && first_segment_bytes == pool.limit_bytes;
        return settings_of(pool.kind, whole ? limit_bytes : first_segment_bytes, limit_bytes);
    }
    return {.config = pool.settings + (grows ? ",limit:1" : ""),
            .total_bytes = limited ? limit_bytes : kUnlimitedBytes};
}

bool is_simulated(const ProgramPool& pool) {
    const PoolDescription* own = find_pool(pool.kind);
    return own != nullptr && own->bound.empty() && !own->planned && own->name != "pytorch";
}

void replay_program_pool(const Timeline& timeline,
                         const Key& key,
                         const ProgramPoolWalk& walk,
                         const ReplayScript& script,
                         ProgramPool* pool) {
    if (pool->kind == "bfc" && pool->settings.empty() && is_partitioned(script)) {
        pool->settings = "preallocate:1,partitioned:True";
    }
    if (is_simulated(*pool)) {
        measure(timeline, key, walk, script, pool);
    }
    if (pool->kind == "best-fit") {
        return;
    }
    auto best_fit =
        make_pool("best-fit",
                  "",
                  std::make_unique<FixedDevice>(kUnlimitedBytes, kUnlimitedBytes, kDriverPageBytes),
                  script.streams);
    if (best_fit) {
        const ReplayResult result = replay(without_failures(script), **best_fit);
        pool->replays.push_back(
            {.pool = "best-fit", .peak_reserved_bytes = result.statistics.reserved.peak});
    }
}

}  // namespace fragtrace::analyzer
