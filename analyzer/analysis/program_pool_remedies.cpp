#include "analyzer/analysis/program_pool_remedies.h"

#include "analyzer/analysis/program_pool_limits.h"
#include "analyzer/analysis/program_pool_replay.h"
#include "analyzer/analysis/program_pool_trials.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/compare_replay.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kRmmQuantumBytes = 256;  // of RMM's pools

struct RemedyRule {
    std::string_view kind;  // of the program's pool
    // "{}" stands for the size of a new pool in bytes, or for what the members below say.
    std::string_view change;
    std::string_view pool;  // simulated
    bool empties = false;   // the same pool, emptied once: "{}" stands for the event behind it
    // The fact that says "recorded" for the pool's framework; empty: for any, if none is known.
    std::string_view framework = {};
    // Only for a pool with this setting. The same pool with the other one is replayed.
    std::string_view setting = {};
    std::string_view instead = {};
    // The same pool, emptied whenever work of a stream ends. "{}" stands for the device.
    bool empties_at_ends = false;
};

constexpr std::array<std::string_view, 3> kFrameworks = {
    "tensorflow.pool", "jax.pool", "onnxruntime.pool"};

constexpr std::array<RemedyRule, 14> kRemedies = {{
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
    {"bfc",
     "XLA_FLAGS=--xla_gpu_enable_allocator_spatial_partitioning=false",
     "bfc",
     false,
     "jax.pool",
     "partitioned:True",
     "partitioned:False"},
    {"bfc", "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", "cuda-async", false, "jax.pool"},
    {"bfc",
     "provider option arena_extend_strategy=kSameAsRequested",
     "bfc",
     false,
     "onnxruntime.pool",
     "exact_regions:False",
     "exact_regions:True"},
    {.kind = "bfc",
     .change = "run option memory.enable_memory_arena_shrinkage=gpu:{} for every run",
     .pool = "bfc",
     .framework = "onnxruntime.pool",
     .empties_at_ends = true},
    {"bfc",
     "TF_GPU_ALLOCATOR=cuda_malloc_async (TensorFlow), XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async "
     "(JAX)",
     "cuda-async"},
}};

bool applies(const Timeline& timeline, const RemedyRule& remedy, const ProgramPool& pool) {
    const bool known = std::any_of(
        kFrameworks.begin(), kFrameworks.end(), [&timeline](std::string_view framework) {
            return is_recorded(timeline, framework);
        });
    const bool of_framework = !remedy.framework.empty() ? is_recorded(timeline, remedy.framework)
                                                        : pool.kind != "bfc" || !known;
    // These settings are those of memory of the device.
    return remedy.kind == pool.kind && of_framework && pool.memory != PoolMemory::kHost &&
           pool.settings.find(remedy.setting) != std::string::npos;
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

// The script with an empty_cache call after each end of a stream. Empty if no stream ends.
ReplayScript emptied_at_ends(const ReplayScript& script) {
    ReplayScript changed = script;
    changed.steps = {};
    if (script.steps.may_have({Step::Kind::kStreamEnd})) {
        for (std::size_t i = 0; i < script.steps.size(); ++i) {
            const Step step = script.steps[i];
            changed.steps.push_back(step);
            if (step.kind == Step::Kind::kStreamEnd) {
                changed.steps.push_back({.kind = Step::Kind::kEmptyCache, .event = step.event});
            }
        }
    }
    return changed;
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
    auto simulated = make_pool(
        remedy->pool,
        settings.config,
        std::make_unique<FixedDevice>(settings.total_bytes, kUnlimitedBytes, kDriverPageBytes),
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
    replay_into(changed, failed, **simulated, hooks, remedy);
    return true;
}

// Another pool with the same memory serves all requests.
bool replay_in(const ReplayScript& script, std::uint64_t bytes, ProgramPoolRemedy* remedy) {
    auto simulated =
        make_pool(remedy->pool,
                  remedy->config,
                  std::make_unique<FixedDevice>(
                      kUnlimitedBytes, round_up(bytes, kDriverPageBytes), kDriverPageBytes),
                  script.streams);
    if (!simulated) {
        return false;
    }
    replay_into(script, script.steps[first_failed_step(script)].event, **simulated, {}, remedy);
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

ProgramPool with_setting(const ProgramPool& pool,
                         std::string_view setting,
                         std::string_view instead) {
    ProgramPool changed;
    changed.kind = pool.kind;
    changed.limit_bytes = pool.limit_bytes;
    changed.settings = pool.settings;
    changed.settings.replace(changed.settings.find(setting), setting.size(), instead);
    return changed;
}

// Returns false if the remedy could not be tried.
bool try_one(const Timeline& timeline,
             const ProgramPoolWalk::Key& key,
             const ProgramPoolWalk& walk,
             const ReplayScript& script,
             const ProgramPool& pool,
             const RemedyRule& one,
             ProgramPoolRemedy* remedy) {
    const std::uint64_t first_bytes = first_segment_bytes(key, walk);
    if (one.empties) {
        return try_emptying(timeline, key, walk, script, pool, remedy);
    }
    if (one.empties_at_ends) {
        remedy->change = fmt::format(fmt::runtime(one.change), key.device);
        const ReplayScript changed = emptied_at_ends(script);
        return !changed.steps.empty() &&
               try_settings(changed, own_settings(pool, first_bytes, pool.remedy_bytes), remedy);
    }
    remedy->change = fmt::format(fmt::runtime(one.change), pool.remedy_bytes);
    if (!one.setting.empty()) {
        const ProgramPool changed = with_setting(pool, one.setting, one.instead);
        return try_settings(script, own_settings(changed, first_bytes, pool.remedy_bytes), remedy);
    }
    return try_pool(script, pool.remedy_bytes, remedy);
}

void try_other_pools(const Timeline& timeline,
                     const ProgramPoolWalk::Key& key,
                     const ProgramPoolWalk& walk,
                     const ReplayScript& script,
                     ProgramPool* pool) {
    for (const RemedyRule& one : kRemedies) {
        ProgramPoolRemedy remedy{.change = std::string(one.change), .pool = std::string(one.pool)};
        if (applies(timeline, one, *pool) &&
            try_one(timeline, key, walk, script, *pool, one, &remedy)) {
            pool->remedies.push_back(std::move(remedy));
        }
    }
}

}  // namespace

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
    const std::uint64_t bytes = pool->is_limited() ? pool->limit_bytes : pool->peak_reserved_bytes;
    pool->remedy_bytes = bytes / kRmmQuantumBytes * kRmmQuantumBytes;
    const bool had_room = failure == PoolFailure::kFragmented || failure == PoolFailure::kRefused;
    if (had_room) {
        try_other_pools(timeline, key, walk, script, pool);
    }
    if (had_room || failure == PoolFailure::kTooLittle) {
        try_larger_limit(timeline, key, walk, script, pool);
    }
}

}  // namespace fragtrace::analyzer
