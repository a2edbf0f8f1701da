#include "analyzer/analysis/program_pool_replay.h"

#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Key = ProgramPoolWalk::Key;

constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

bool knows_settings(const ProgramPool& pool) {
    return !pool.settings.empty() && pool.limit_bytes != 0 && pool.limit_bytes != kUnknown64;
}

// A pool of BFC that grows has a limit of its own. The device of a replay has the pool's limit.
std::string known_config(const std::string& settings) {
    return settings.find("preallocate:0") == std::string::npos ? settings : settings + ",limit:1";
}

// If the settings are not known, the first segment shows the initial size.
std::string config_of(const std::string& name,
                      const ProgramPool& pool,
                      std::uint64_t first_segment_bytes) {
    constexpr std::uint64_t kQuantumBytes = 256;
    const std::uint64_t initial = round_up(first_segment_bytes, kQuantumBytes);
    if (name == pool.kind && knows_settings(pool)) {
        return known_config(pool.settings);
    }
    if (name == "bfc") {
        return "preallocate:0,limit:1";
    }
    if (name == "rmm-pool") {
        return "initial_pool_size:" + std::to_string(initial);
    }
    return name == "rmm-arena" ? "arena_size:" + std::to_string(std::max(initial, kMiB)) : "";
}

struct PoolScript {
    ReplayScript script;
    // By step: the event that allocated the recorded memory of the block.
    std::vector<EventIndex> segments;
};

// The requests of one pool. Its segments are chosen by the simulated pool. With `failures`, failed
// requests are steps, too, and the driver's refusals are known.
PoolScript script_of(const Timeline& timeline,
                     const Key& key,
                     const ProgramPoolWalk& walk,
                     bool failures) {
    PoolScript made;
    ReplayScript& script = made.script;
    script.source = ScriptSource::kBlocks;
    script.streams = timeline.streams;
    const auto zero = std::find(script.streams.begin(), script.streams.end(), 0u);
    const auto default_stream = static_cast<StreamId>(zero - script.streams.begin());
    if (zero == script.streams.end()) {
        script.streams.push_back(0);
    }
    const auto add_request = [&](EventIndex at, EventIndex segment, bool failed, Step step) {
        const Event request = timeline.events[at];
        const std::uint64_t taken = failed ? 0 : request.extra;
        const bool unknown = request.size_bytes == kUnknown64 || request.size_bytes == 0;
        step.kind = Step::Kind::kAllocate;
        step.event = at;
        step.block = at;
        step.recorded_oom = failed;
        step.value = unknown ? taken : request.size_bytes;
        step.stream = request.stream == kNoStream ? default_stream : request.stream;
        script.steps.push_back(step);
        made.segments.push_back(segment);
    };
    std::size_t cursor = 0;
    EventIndex next = 0;  // not yet looked at for failures and refusals
    std::size_t refusals = 0;
    // Up to `end`: failed requests become steps. Refusals belong to the next request.
    const auto look = [&](EventIndex end) {
        for (; failures && next < end; ++next) {
            const EventKind kind = timeline.events.kind(next);
            if (kind == EventKind::kAllocRefused && timeline.events[next].device == key.device) {
                script.refusals.push_back({timeline.events[next].size_bytes, 0});
            } else if (kind == EventKind::kProgramRequestFailed &&
                       timeline.event_pools.at(next, &cursor) == key.number &&
                       timeline.events[next].size_bytes != kUnknown64) {
                Step step;
                step.first_refusal = static_cast<std::uint32_t>(refusals);
                step.refusal_count = static_cast<std::uint32_t>(script.refusals.size() - refusals);
                refusals = script.refusals.size();
                add_request(next, kNoEvent, true, step);
            }
        }
    };
    for (const ProgramPoolWalk::Step& recorded : walk.steps(key)) {
        look(recorded.event);
        Step step;
        if (recorded.event == recorded.alloc) {
            step.first_refusal = static_cast<std::uint32_t>(refusals);
            step.refusal_count = static_cast<std::uint32_t>(script.refusals.size() - refusals);
            refusals = script.refusals.size();
            add_request(recorded.event, recorded.segment, false, step);
        } else {
            step.kind = Step::Kind::kRelease;
            step.event = recorded.event;
            step.block = recorded.alloc;
            script.steps.push_back(step);
            made.segments.push_back(kNoEvent);
        }
    }
    look(static_cast<EventIndex>(timeline.events.size()));
    return made;
}

void add_replays(const PoolScript& made, std::uint64_t first_segment_bytes, ProgramPool* pool) {
    const PoolDescription* own = find_pool(pool->kind);
    if (own == nullptr || !own->bound.empty() || own->planned || own->name == "pytorch") {
        own = nullptr;
    }
    std::vector<std::string> names;
    if (own != nullptr) {
        names.push_back(pool->kind);
    }
    if (pool->kind != "best-fit") {
        names.emplace_back("best-fit");
    }
    for (const std::string& name : names) {
        const bool known = name == pool->kind && knows_settings(*pool);
        auto simulated =
            make_pool(name,
                      config_of(name, *pool, first_segment_bytes),
                      std::make_unique<FixedDevice>(
                          known ? pool->limit_bytes : kUnlimitedBytes, kUnlimitedBytes, kPageBytes),
                      made.script.streams);
        if (simulated) {
            const ReplayResult result = replay(made.script, **simulated);
            pool->replays.push_back({name, result.statistics.reserved.peak});
        }
    }
}

// ---- fidelity -----------------------------------------------------------------------------------

// Why a replay cannot be compared with the recording; empty if it can.
std::string why_not_judged(const Timeline& timeline, const ProgramPool& pool) {
    if (pool.memory == PoolMemory::kUnknown) {
        return "the memory of the pool was not recorded";
    }
    if (pool.shares_memory) {
        return "other pools use the same memory";
    }
    if (!timeline.gaps.empty() || !timeline.checkpoints.empty()) {
        return "the recording does not have the whole run";
    }
    return "";
}

// Compares a replay with the recording, request by request.
class Comparison {
  public:
    Comparison(const Timeline& timeline, const PoolScript& made)
        : timeline_(timeline), made_(made) {}

    void look(std::size_t i, const AllocateResult& served, Pool& driven) {
        for (const DriverCall& call : driven.take_driver_calls()) {
            if (!call.refused && call.kind == DriverCall::Kind::kSegmentAlloc) {
                replayed_sizes_.push_back(call.size_bytes);
            }
        }
        const Step step = made_.script.steps[i];
        const bool failed =
            served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
        ++fidelity_.placements;
        if (step.recorded_oom || failed) {
            compare_failure(step, failed);
        } else if (made_.segments[i] == kNoEvent) {
            note(step.event, "the memory of the block was not recorded");
        } else {
            compare_place(step, made_.segments[i], served.placement);
        }
    }

    ProgramPoolFidelity take() {
        fidelity_.segments = numbers_.size();
        return std::move(fidelity_);
    }

  private:
    void note(EventIndex event, const std::string& text) {
        if (fidelity_.reason.empty()) {
            fidelity_.reason = fmt::format("event {}: {}", event, text);
        }
    }

    void compare_failure(const Step& step, bool failed) {
        if (step.recorded_oom == failed) {
            ++fidelity_.placements_equal;
        } else {
            note(step.event,
                 failed ? "the recorded pool serves the request, the replay does not"
                        : "the recorded pool does not serve the request, the replay does");
        }
    }

    // The recorded segments are numbered in the order in which the pool first used them.
    std::uint32_t number_of(EventIndex segment, EventIndex event) {
        const auto [at, is_new] =
            numbers_.try_emplace(segment, static_cast<std::uint32_t>(numbers_.size()));
        const std::uint32_t number = at->second;
        if (is_new) {
            const std::uint64_t size_bytes = timeline_.events[segment].size_bytes;
            const bool is_replayed = number < replayed_sizes_.size();
            if (is_replayed && replayed_sizes_[number] == size_bytes) {
                ++fidelity_.segments_equal;
            } else {
                note(event,
                     fmt::format("the recorded pool allocates {} from the driver, the replay {}",
                                 format_bytes(size_bytes),
                                 is_replayed ? format_bytes(replayed_sizes_[number]) : "nothing"));
            }
        }
        return number;
    }

    void compare_place(const Step& step, EventIndex segment, const Placement& placed) {
        const std::uint32_t number = number_of(segment, step.event);
        const std::uint64_t offset_bytes =
            timeline_.events.address(step.event) - timeline_.events.address(segment);
        if (placed.segment == number && placed.offset_bytes == offset_bytes &&
            placed.block_bytes == timeline_.events[step.event].extra) {
            ++fidelity_.placements_equal;
        } else {
            note(step.event,
                 fmt::format("{} placed in segment {} at +{}, recorded in segment {} at +{}",
                             format_bytes(step.value),
                             placed.segment,
                             placed.offset_bytes,
                             number,
                             offset_bytes));
        }
    }

    const Timeline& timeline_;
    const PoolScript& made_;
    ProgramPoolFidelity fidelity_;
    std::map<EventIndex, std::uint32_t> numbers_;
    std::vector<std::uint64_t> replayed_sizes_;
};

ProgramPoolFidelity fidelity_of(const Timeline& timeline,
                                const PoolScript& made,
                                const ProgramPool& pool) {
    ProgramPoolFidelity not_judged;
    not_judged.not_judged = why_not_judged(timeline, pool);
    auto device = std::make_unique<RecordedDevice>(pool.limit_bytes, kUnlimitedBytes);
    RecordedDevice& recorded = *device;
    auto simulated =
        make_pool(pool.kind, known_config(pool.settings), std::move(device), made.script.streams);
    if (!simulated && not_judged.not_judged.empty()) {
        not_judged.not_judged = "the pool's settings are not understood";
    }
    if (!not_judged.not_judged.empty()) {
        return not_judged;
    }
    Comparison comparison(timeline, made);
    ReplayHooks hooks;
    hooks.after_request = [&comparison](std::size_t i, const AllocateResult& served, Pool& driven) {
        comparison.look(i, served, driven);
    };
    (void)replay(made.script, **simulated, &recorded, hooks);
    return comparison.take();
}

// ---- remedies -----------------------------------------------------------------------------------

struct Candidate {
    const char* setting;
    const char* pool;
    std::string config;
    bool at_least;
};

// Settings of TensorFlow, tried at the pool's limit.
void add_remedies(const PoolScript& made, ProgramPool* pool) {
    const bool grows = pool->settings.find("preallocate:0") != std::string::npos;
    const std::string collects = ",garbage_collection:True";
    const Candidate candidates[] = {
        {grows ? "TF_FORCE_GPU_ALLOW_GROWTH=false" : "TF_FORCE_GPU_ALLOW_GROWTH=true",
         "bfc",
         grows ? "preallocate:1" + collects : "preallocate:0,limit:1" + collects,
         false},
        {"TF_GPU_ALLOCATOR=cuda_malloc_async", "cuda-async", "", false},
        {"TF_GPU_ALLOCATOR=cuda_malloc_async", "cuda-async", "remap:True", true},
    };
    const auto recorded = pool->failed;
    for (const Candidate& candidate : candidates) {
        auto simulated =
            make_pool(candidate.pool,
                      candidate.config,
                      std::make_unique<FixedDevice>(pool->limit_bytes, pool->limit_bytes, 512),
                      made.script.streams);
        if (!simulated) {
            continue;
        }
        ProgramPoolRemedy remedy{.setting = candidate.setting, .at_least = candidate.at_least};
        ReplayHooks hooks;
        hooks.after_request = [&](std::size_t i, const AllocateResult& served, Pool&) {
            const bool fails =
                served.outcome == Outcome::kOutOfMemory || served.outcome == Outcome::kRejected;
            remedy.failed += fails ? 1 : 0;
            remedy.served += !fails && made.script.steps[i].recorded_oom ? 1 : 0;
        };
        (void)replay(made.script, **simulated, nullptr, hooks);
        if (remedy.failed < recorded) {
            pool->remedies.push_back(std::move(remedy));
        }
    }
}

}  // namespace

void add_program_pool_replays(const Timeline& timeline,
                              const ProgramPoolWalk::Key& key,
                              const ProgramPoolWalk& walk,
                              ProgramPool* pool) {
    add_replays(script_of(timeline, key, walk, false), walk.first_segment_bytes(key), pool);
    if (!knows_settings(*pool) || find_pool(pool->kind) == nullptr) {
        return;
    }
    const PoolScript complete = script_of(timeline, key, walk, true);
    pool->fidelity = fidelity_of(timeline, complete, *pool);
    const bool exact = pool->fidelity->exact();
    if (exact && pool->failed != 0 && pool->memory == PoolMemory::kDevice &&
        timeline.fact("tensorflow.pool") == "recorded") {
        add_remedies(complete, pool);
    }
}

}  // namespace fragtrace::analyzer
