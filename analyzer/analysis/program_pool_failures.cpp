#include "analyzer/analysis/program_pool_failures.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/program_pool_replay.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kQuantumBytes = 256;  // of RMM's pools
constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

bool is_limited(const ProgramPool& pool) {
    return pool.limit_bytes != 0 && pool.limit_bytes != kUnknown64;
}

// ---- the culprit --------------------------------------------------------------------------------

// The blocks of one line, and the largest range that would be free without them.
struct Line {
    HeldBy held;
    std::uint64_t largest_bytes = 0;
    EventIndex oldest = kNoEvent;  // the allocation of its oldest block
    // The range that is being extended: free ranges and blocks of this line alone.
    DeviceAddress begin = 0;
    DeviceAddress end = 0;  // of the last block in it
};

std::vector<Line> lines_of(const Timeline& timeline,
                           const HeapSnapshot& heap,
                           Symbolizer* symbols) {
    const BlockLabels labels(timeline, heap, symbols);
    std::map<std::pair<OriginId, std::uint64_t>, std::size_t> by_key;
    std::map<std::string, std::size_t> by_label;
    std::vector<Line> lines;
    for (const HeapSegment& segment : heap.segments) {
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock* const block = &heap.blocks[segment.first_block + i];
            if (block->state == BlockState::kFree) {
                continue;
            }
            const auto key = labels.key_of(*block);
            auto at = by_key.find(key);
            if (at == by_key.end()) {
                const std::string label = labels.label_of(key);
                const auto line = by_label.try_emplace(label, lines.size());
                if (line.second) {
                    lines.emplace_back().held.label = label;
                }
                at = by_key.emplace(key, line.first->second).first;
            }
            Line& line = lines[at->second];
            line.held.add(block->size_bytes, 1);
            line.oldest = std::min(line.oldest, block->allocated_by);
            const bool free_before = i > 0 && block[-1].state == BlockState::kFree;
            const bool free_after =
                i + 1 < segment.block_count && block[1].state == BlockState::kFree;
            const DeviceAddress begin = block->address - (free_before ? block[-1].size_bytes : 0);
            const bool extends = i > 0 && line.end == begin && line.end > segment.address;
            line.begin = extends ? line.begin : begin;
            line.end = block->address + block->size_bytes;
            line.largest_bytes = std::max(
                line.largest_bytes, line.end - line.begin + (free_after ? block[1].size_bytes : 0));
        }
    }
    return lines;
}

void find_culprit(const Timeline& timeline,
                  const HeapSnapshot& heap,
                  Symbolizer* symbols,
                  ProgramPoolMoment* moment) {
    for (Line& line : lines_of(timeline, heap, symbols)) {
        const bool fewer =
            moment->without_culprit_bytes == 0 || line.held.bytes < moment->culprit.bytes;
        if (line.largest_bytes >= moment->requested_bytes && fewer) {
            moment->culprit = std::move(line.held);
            moment->without_culprit_bytes = line.largest_bytes;
            moment->oldest = line.oldest;
        }
    }
    if (moment->without_culprit_bytes == 0) {
        for (const HeapBlock& block : heap.blocks) {
            moment->oldest = std::min(moment->oldest, block.allocated_by);
        }
    }
}

// ---- remedies -----------------------------------------------------------------------------------

struct Remedy {
    std::string_view kind;  // of the program's pool
    // "{}" stands for the size of a new pool in bytes, or for the event before which a pool is
    // emptied.
    std::string_view change;
    std::string_view pool;  // simulated
    bool empties = false;   // the same pool, emptied once
    // The fact that says "recorded" for the pool's framework; empty: for any, if none is known.
    std::string_view framework = {};
};

constexpr std::array<std::string_view, 2> kFrameworks = {"tensorflow.pool", "jax.pool"};

constexpr std::array<Remedy, 11> kRemedies = {{
    {.kind = "cupy",
     .change =
         "mempool.free_all_blocks() just before event {}, when the pool held least before the "
         "blocks that are in the way",
     .pool = "cupy",
     .empties = true},
    {"cupy", "cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)", "cuda-async"},
    {"cupy",
     "rmm.reinitialize(pool_allocator=True, initial_pool_size={}); "
     "cupy.cuda.set_allocator(rmm.allocators.cupy.rmm_cupy_allocator)",
     "rmm-pool"},
    {"rmm-pool",
     "rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())",
     "cuda-async"},
    {"rmm-pool",
     "rmm.mr.ArenaMemoryResource(rmm.mr.CudaMemoryResource(), arena_size={})",
     "rmm-arena"},
    {"rmm-arena",
     "rmm.mr.set_current_device_resource(rmm.mr.CudaAsyncMemoryResource())",
     "cuda-async"},
    {"rmm-arena",
     "rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size={})",
     "rmm-pool"},
    {"cuda-async",
     "rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size={})",
     "rmm-pool"},
    {"bfc", "TF_GPU_ALLOCATOR=cuda_malloc_async", "cuda-async", false, "tensorflow.pool"},
    {"bfc", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", "cuda-async", false, "jax.pool"},
    {"bfc",
     "TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow), XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async "
     "(JAX)",
     "cuda-async"},
}};

bool applies(const Timeline& timeline, const Remedy& remedy, const ProgramPool& pool) {
    const auto is_recorded = [&timeline](std::string_view framework) {
        return timeline.fact(std::string(framework)) == "recorded";
    };
    const bool known = std::any_of(kFrameworks.begin(), kFrameworks.end(), is_recorded);
    return remedy.kind == pool.kind && (!remedy.framework.empty() ? is_recorded(remedy.framework)
                                                                  : pool.kind != "bfc" || !known);
}

// A pool that reserves all its memory at the start.
std::string config_of_size(std::string_view pool, std::uint64_t bytes) {
    if (pool == "rmm-pool") {
        return fmt::format("initial_pool_size:{0},maximum_pool_size:{0}", bytes);
    }
    return pool == "rmm-arena" ? fmt::format("arena_size:{}", std::max(bytes, kMiB)) : "";
}

// The script with an empty_cache call before one of its steps.
ReplayScript emptied(const ReplayScript& script, std::size_t before) {
    ReplayScript changed = script;
    changed.steps = {};
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        if (i == before) {
            changed.steps.push_back(
                {.kind = Step::Kind::kEmptyCache, .event = script.steps[i].event});
        }
        changed.steps.push_back(script.steps[i]);
    }
    return changed;
}

std::size_t first_failed_step(const ReplayScript& script) {
    std::size_t at = 0;
    while (at < script.steps.size() && !script.steps[at].recorded_oom) {
        ++at;
    }
    return at;
}

// Replays the script, and fills what the replay shows.
void fill(const ReplayScript& script,
          EventIndex failed_event,
          Pool& pool,
          ReplayHooks hooks,
          ProgramPoolRemedy* remedy) {
    bool served = false;
    hooks.after_request = [&](std::size_t step, const AllocateResult& result, Pool&) {
        if (script.steps[step].event == failed_event) {
            served = result.outcome != Outcome::kOutOfMemory;
        }
    };
    const ReplayResult result = replay(script, pool, nullptr, hooks);
    remedy->failed = result.ooms();
    remedy->peak_reserved_bytes = result.statistics.reserved.peak;
    const bool before =
        std::any_of(result.troubles.begin(), result.troubles.end(), [&](const Trouble& trouble) {
            return trouble.outcome == Outcome::kOutOfMemory && trouble.event < failed_event;
        });
    remedy->serves =
        served && !before ? ProgramPoolRemedy::Serves::kYes : ProgramPoolRemedy::Serves::kNo;
}

// The last step before the block `oldest` at which the pool held the fewest bytes. Returns the
// number of steps if there is no such block.
std::size_t when_least_is_held(const ReplayScript& script, EventIndex oldest) {
    std::unordered_map<BlockId, std::uint64_t> held;
    std::uint64_t bytes = 0;
    std::uint64_t least = ~std::uint64_t{0};
    std::size_t at = script.steps.size();
    for (std::size_t i = 0; i < script.steps.size() && script.steps[i].event <= oldest; ++i) {
        const Step step = script.steps[i];
        if (step.kind == Step::Kind::kAllocate && !step.recorded_oom) {
            if (bytes <= least) {
                least = bytes;
                at = i;
            }
            held[step.block] = step.value;
            bytes += step.value;
        } else if (step.kind == Step::Kind::kRelease) {
            if (const auto block = held.find(step.block); block != held.end()) {
                bytes -= block->second;
                held.erase(block);
            }
        }
    }
    return oldest == kNoEvent ? script.steps.size() : at;
}

// The program empties its pool once, and nothing else changes.
bool try_emptying(const Timeline& timeline,
                  const ProgramPoolWalk::Key& key,
                  const ProgramPoolWalk& walk,
                  const ReplayScript& script,
                  const ProgramPool& pool,
                  ProgramPoolRemedy* remedy) {
    const SimulatedSettings settings =
        settings_of(remedy->pool, first_segment_bytes(key, walk), pool.remedy_bytes);
    const std::size_t before = when_least_is_held(script, pool.failures.front().oldest);
    auto simulated =
        make_pool(remedy->pool,
                  settings.config,
                  std::make_unique<FixedDevice>(settings.total_bytes, kUnlimitedBytes, kPageBytes),
                  script.streams);
    if (before == script.steps.size() || !simulated) {
        return false;
    }
    remedy->config = settings.config;
    remedy->change = fmt::format(fmt::runtime(remedy->change), script.steps[before].event);
    const ReplayScript changed = emptied(script, before);
    const RecordedPlace place = places_of(timeline, key, walk);
    ReplayHooks hooks;
    // After the change the recorded places mean nothing.
    hooks.before_step = choose_places(changed, place, **simulated, before);
    const EventIndex failed = script.steps[first_failed_step(script)].event;
    fill(changed, failed, **simulated, hooks, remedy);
    return true;
}

// Another pool with the same memory serves all requests.
bool replay_in(const ReplayScript& script, std::uint64_t bytes, ProgramPoolRemedy* remedy) {
    auto simulated = make_pool(
        remedy->pool,
        remedy->config,
        std::make_unique<FixedDevice>(kUnlimitedBytes, round_up(bytes, kPageBytes), kPageBytes),
        script.streams);
    if (!simulated) {
        return false;
    }
    fill(script, script.steps[first_failed_step(script)].event, **simulated, {}, remedy);
    return true;
}

bool try_pool(const ReplayScript& script, std::uint64_t bytes, ProgramPoolRemedy* remedy) {
    remedy->config = config_of_size(remedy->pool, bytes);
    if (!replay_in(script, bytes, remedy)) {
        return false;
    }
    const PoolDescription* const pool = find_pool(remedy->pool);
    if (remedy->serves == ProgramPoolRemedy::Serves::kNo && !pool->lower_config.empty()) {
        ProgramPoolRemedy better{.change = remedy->change,
                                 .pool = remedy->pool,
                                 .config = std::string(pool->lower_config)};
        if (replay_in(script, bytes, &better) && better.serves == ProgramPoolRemedy::Serves::kYes) {
            better.serves = ProgramPoolRemedy::Serves::kPerhaps;
            *remedy = std::move(better);
        }
    }
    return true;
}

}  // namespace

void explain_failure(const Timeline& timeline,
                     const ProgramPool& pool,
                     const HeapSnapshot& heap,
                     bool refused,
                     Symbolizer* symbols,
                     ProgramPoolMoment* moment) {
    if (pool.memory == PoolMemory::kUnknown || moment->requested_bytes == kUnknown64) {
        moment->failure = PoolFailure::kUnknown;
        return;
    }
    if (moment->reserved_bytes == 0) {
        moment->failure = PoolFailure::kNoBlock;
        return;
    }
    if (pool.shares_memory) {
        moment->failure = PoolFailure::kShared;
        return;
    }
    const std::uint64_t room =
        is_limited(pool) && !refused && pool.limit_bytes > moment->reserved_bytes
            ? pool.limit_bytes - moment->reserved_bytes
            : 0;
    const std::uint64_t requested = moment->requested_bytes;
    if (requested > room && requested - room > moment->free_bytes()) {
        moment->failure = PoolFailure::kTooLittle;
    } else if (moment->largest_free_bytes < requested && room < requested) {
        moment->failure = PoolFailure::kFragmented;
        find_culprit(timeline, heap, symbols, moment);
    } else {
        moment->failure = PoolFailure::kRefused;
    }
}

void try_remedies(const Timeline& timeline,
                  const ProgramPoolWalk::Key& key,
                  const ProgramPoolWalk& walk,
                  const ReplayScript& script,
                  ProgramPool* pool) {
    const std::size_t failed_step = first_failed_step(script);
    if (pool->failures.empty() || failed_step == script.steps.size() ||
        script.steps[failed_step].event != pool->failures.front().event) {
        return;
    }
    const PoolFailure failure = pool->failures.front().failure;
    if (failure != PoolFailure::kFragmented && failure != PoolFailure::kRefused) {
        return;
    }
    const std::uint64_t bytes = is_limited(*pool) ? pool->limit_bytes : pool->peak_reserved_bytes;
    pool->remedy_bytes = bytes / kQuantumBytes * kQuantumBytes;
    for (const Remedy& one : kRemedies) {
        if (!applies(timeline, one, *pool)) {
            continue;
        }
        ProgramPoolRemedy remedy{
            .change = one.empties ? std::string(one.change)
                                  : fmt::format(fmt::runtime(one.change), pool->remedy_bytes),
            .pool = std::string(one.pool)};
        const bool tried = one.empties ? try_emptying(timeline, key, walk, script, *pool, &remedy)
                                       : try_pool(script, pool->remedy_bytes, &remedy);
        if (tried) {
            pool->remedies.push_back(std::move(remedy));
        }
    }
}

}  // namespace fragtrace::analyzer
