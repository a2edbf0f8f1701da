#include "analyzer/pools/registry.h"

#include "analyzer/pools/moving_pool.h"
#include "analyzer/pools/none_pool.h"
#include "analyzer/pools/pytorch_pool.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

const std::vector<PoolDescription>& known_pools() {
    static const std::vector<PoolDescription> pools = {
        {"pytorch", "PyTorch's caching allocator, settings as in PYTORCH_CUDA_ALLOC_CONF", {}},
        {"none", "no pool: one driver allocation per request", {}},
        {"live", "bound: the bytes asked for and not given back", "no allocator reserves less"},
        {"compact",
         "bound: one heap without holes, compacted at every request, blocks of 512 bytes",
         "no allocator that rounds to 512 bytes reserves less"},
        {"pages",
         "bound: blocks of 2 MiB and more are stitched together from whole pages of 2 MiB",
         "no allocator that gives each large block whole 2 MiB pages reserves less"},
    };
    return pools;
}

std::string pool_names() {
    std::string names;
    for (const PoolDescription& pool : known_pools()) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", pool.name);
    }
    return names;
}

std::string_view pool_bound(std::string_view name) {
    for (const PoolDescription& pool : known_pools()) {
        if (pool.name == name) {
            return pool.bound;
        }
    }
    return {};
}

Result<std::unique_ptr<Pool>> make_pool(std::string_view name,
                                        std::string_view config,
                                        std::unique_ptr<Device> device,
                                        std::vector<std::uint64_t> stream_handles,
                                        const PytorchRules& rules) {
    if (name == "pytorch") {
        const auto settings = parse_pytorch_config(config, rules);
        if (!settings) {
            return settings.error();
        }
        return std::unique_ptr<Pool>(std::make_unique<PytorchPool>(
            *settings, std::move(device), std::move(stream_handles), rules));
    }
    const auto& known = known_pools();
    if (std::none_of(known.begin(), known.end(), [name](const PoolDescription& pool) {
            return pool.name == name;
        })) {
        return Error{ErrorCode::kUsage,
                     fmt::format("unknown pool '{}'; known are: {}", name, pool_names())};
    }
    if (!config.empty()) {
        return Error{ErrorCode::kUsage,
                     fmt::format("pool '{}' has no settings, got '{}'", name, config)};
    }
    for (const MovingRules* moving : {&kLiveRules, &kCompactRules, &kPagesRules}) {
        if (name == moving->name) {
            return std::unique_ptr<Pool>(std::make_unique<MovingPool>(*moving, std::move(device)));
        }
    }
    return std::unique_ptr<Pool>(std::make_unique<NonePool>(std::move(device)));
}

}  // namespace fragtrace::analyzer
