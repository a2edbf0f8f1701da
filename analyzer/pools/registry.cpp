#include "analyzer/pools/registry.h"

#include "analyzer/pools/none_pool.h"
#include "analyzer/pools/pytorch_pool.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

const std::vector<PoolDescription>& known_pools() {
    static const std::vector<PoolDescription> pools = {
        {"pytorch", "PyTorch's caching allocator, settings as in PYTORCH_CUDA_ALLOC_CONF"},
        {"none", "no pool: one driver allocation per request"},
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
    if (name == "none") {
        if (!config.empty()) {
            return Error{ErrorCode::kUsage,
                         fmt::format("pool 'none' has no settings, got '{}'", config)};
        }
        return std::unique_ptr<Pool>(std::make_unique<NonePool>(std::move(device)));
    }
    return Error{ErrorCode::kUsage,
                 fmt::format("unknown pool '{}'; known are: {}", name, pool_names())};
}

}  // namespace fragtrace::analyzer
