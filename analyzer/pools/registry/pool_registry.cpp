#include "analyzer/pools/registry/pool_registry.h"

#include "analyzer/pools/others/best_fit_pool.h"
#include "analyzer/pools/others/bfc_pool.h"
#include "analyzer/pools/others/cuda_async_pool.h"
#include "analyzer/pools/others/cupy_pool.h"
#include "analyzer/pools/others/moving_pool.h"
#include "analyzer/pools/others/none_pool.h"
#include "analyzer/pools/others/offline_pool.h"
#include "analyzer/pools/others/rmm_arena_pool.h"
#include "analyzer/pools/others/rmm_pool.h"
#include "analyzer/pools/pytorch/pytorch_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

Result<std::unique_ptr<Pool>> make_pytorch(PoolSetup setup) {
    const auto settings = parse_pytorch_config(setup.config, setup.rules);
    if (!settings) {
        return settings.error();
    }
    return std::unique_ptr<Pool>(std::make_unique<PytorchPool>(
        *settings, std::move(setup.device), std::move(setup.stream_handles), setup.rules));
}

Error no_settings(std::string_view name, std::string_view config) {
    return {ErrorCode::kUsage, fmt::format("pool '{}' has no settings, got '{}'", name, config)};
}

Result<std::unique_ptr<Pool>> make_none(PoolSetup setup) {
    if (!setup.config.empty()) {
        return no_settings("none", setup.config);
    }
    return std::unique_ptr<Pool>(std::make_unique<NonePool>(std::move(setup.device)));
}

template <const MovingRules& rules>
Result<std::unique_ptr<Pool>> make_moving(PoolSetup setup) {
    if (!setup.config.empty()) {
        return no_settings(rules.name, setup.config);
    }
    return std::unique_ptr<Pool>(std::make_unique<MovingPool>(rules, std::move(setup.device)));
}

Result<std::unique_ptr<Pool>> make_best_fit(PoolSetup setup) {
    return BestFitPool::make(setup.config, std::move(setup.device));
}

Result<std::unique_ptr<Pool>> make_bfc(PoolSetup setup) {
    return BfcPool::make(setup.config, std::move(setup.device), setup.stream_handles);
}

Result<std::unique_ptr<Pool>> make_cupy(PoolSetup setup) {
    return CupyPool::make(setup.config, std::move(setup.device));
}

Result<std::unique_ptr<Pool>> make_rmm_pool(PoolSetup setup) {
    return RmmPool::make(setup.config, std::move(setup.device), std::move(setup.stream_handles));
}

Result<std::unique_ptr<Pool>> make_rmm_arena(PoolSetup setup) {
    return RmmArenaPool::make(setup.config, std::move(setup.device));
}

Result<std::unique_ptr<Pool>> make_cuda_async(PoolSetup setup) {
    return make_cuda_async_pool(setup.config, std::move(setup.device));
}

Result<std::unique_ptr<Pool>> make_offline(PoolSetup setup) {
    if (!setup.plan) {
        return Error{ErrorCode::kUsage, "pool 'offline' needs a plan of the requests"};
    }
    return std::unique_ptr<Pool>(std::make_unique<OfflinePool>(
        std::string(setup.config), std::move(setup.plan), std::move(setup.device)));
}

}  // namespace

const std::vector<PoolDescription>& known_pools() {
    static const std::vector<PoolDescription> pools = {
        {.name = "pytorch",
         .description = "PyTorch's caching allocator, settings as in PYTORCH_CUDA_ALLOC_CONF",
         .usable_by = "the default",
         .streams = StreamRule::kSegments,
         .make = make_pytorch},
        {.name = "none",
         .description = "no pool: one driver allocation per request",
         .usable_by = "PYTORCH_NO_CUDA_MEMORY_CACHING=1",
         .make = make_none},
        {.name = "cuda-async",
         .description = "cudaMallocAsync as a model with two ends, settings: remap",
         .usable_by = "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
         .lower_config = "remap:True",
         .make = make_cuda_async},
        {.name = "rmm-pool",
         .description = "RAPIDS RMM's pool, settings: initial_pool_size, maximum_pool_size",
         .usable_by = "rmm as a pluggable allocator",
         .keeps = true,
         .make = make_rmm_pool},
        {.name = "rmm-arena",
         .description = "RAPIDS RMM's arenas, settings: arena_size",
         .usable_by = "rmm as a pluggable allocator",
         .keeps = true,
         .make = make_rmm_arena},
        {.name = "bfc",
         .description =
             "the pool of JAX, TensorFlow and ONNX Runtime, settings: preallocate, limit, "
             "garbage_collection, fragmentation_fraction, partitioned, onnxruntime, "
             "exact_regions, first_region, most_waste, most_doubled, "
             "region_after_shrink",
         .not_usable = "of JAX, TensorFlow and ONNX Runtime only",
         .keeps = true,
         .make = make_bfc},
        {.name = "cupy",
         .description = "CuPy's pool, settings: limit",
         .not_usable = "of CuPy only",
         .make = make_cupy},
        {.name = "best-fit",
         .description =
             "for comparison: best fit over one growing heap, settings: round_to, grow_by",
         .not_usable = "for comparison, not an allocator for programs",
         .keeps = true,
         .make = make_best_fit},
        {.name = "live",
         .description = "bound: the requested bytes of live allocations",
         .bound = "no allocator reserves less",
         .moves = true,
         .make = make_moving<kLiveRules>},
        {.name = "compact",
         .description =
             "bound: one heap without holes, compacted at every request, blocks of 512 bytes",
         .bound = "no allocator that rounds to 512 bytes reserves less",
         .moves = true,
         .make = make_moving<kCompactRules>},
        {.name = "pages",
         .description =
             "bound: blocks of 2 MiB and more are stitched together from whole pages of 2 MiB",
         .bound = "no allocator that gives each large block whole 2 MiB pages reserves less",
         .moves = true,
         .make = make_moving<kPagesRules>},
        {.name = "offline",
         .description = "bound: blocks where a plan of the recorded lifetimes puts them",
         .bound = "a plan made in advance reaches this if the run repeats itself",
         .planned = true,
         .streams = StreamRule::kSegments,
         .make = make_offline},
    };
    return pools;
}

const PoolDescription* find_pool(std::string_view name) {
    for (const PoolDescription& pool : known_pools()) {
        if (pool.name == name) {
            return &pool;
        }
    }
    return nullptr;
}

std::string pool_names() {
    std::string names;
    for (const PoolDescription& pool : known_pools()) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", pool.name);
    }
    return names;
}

std::string_view pool_bound(std::string_view name) {
    const PoolDescription* pool = find_pool(name);
    return pool == nullptr ? std::string_view() : pool->bound;
}

bool is_pool_setting(std::string_view text) {
    const auto takes = [text](const PoolDescription& pool) {
        constexpr std::uint64_t kCardBytes = std::uint64_t{1} << 40;
        auto card = std::make_unique<FixedDevice>(kCardBytes, kCardBytes, 2 * kMiB);
        return pool.name != "pytorch" && !pool.planned &&
               pool.make({text, std::move(card), {}, {}}).ok();
    };
    return is_pytorch_setting(text) ||
           (!text.empty() && std::any_of(known_pools().begin(), known_pools().end(), takes));
}

Result<std::unique_ptr<Pool>> make_pool(std::string_view name,
                                        std::string_view config,
                                        std::unique_ptr<Device> device,
                                        std::vector<std::uint64_t> stream_handles,
                                        const PytorchRules& rules) {
    const PoolDescription* pool = find_pool(name);
    if (pool == nullptr) {
        return Error{ErrorCode::kUsage,
                     fmt::format("unknown pool '{}'; known are: {}", name, pool_names())};
    }
    return pool->make({config, std::move(device), std::move(stream_handles), rules});
}

}  // namespace fragtrace::analyzer
