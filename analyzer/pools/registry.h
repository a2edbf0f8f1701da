// The simulated pools by name: the one place that knows them all.
#pragma once

#include "analyzer/pools/pool.h"
#include "analyzer/pools/pytorch_rules.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PoolDescription {
    std::string_view name;
    std::string_view description;  // one line
    // Not a pool that could be built: what its peak of reserved memory bounds. Else empty.
    std::string_view bound;
};

// In the order in which they are listed for people.
const std::vector<PoolDescription>& known_pools();
// "pytorch, none, ...".
std::string pool_names();
// The bound of known_pools(); empty for pools, and for names that are not known.
std::string_view pool_bound(std::string_view name);

// `config` in the pool's own language; empty = defaults. `stream_handles[i]` is the raw handle of
// StreamId i; `rules` are those of the release of PyTorch. Errors are kUsage.
Result<std::unique_ptr<Pool>> make_pool(std::string_view name,
                                        std::string_view config,
                                        std::unique_ptr<Device> device,
                                        std::vector<std::uint64_t> stream_handles = {},
                                        const PytorchRules& rules = {});

}  // namespace fragtrace::analyzer
