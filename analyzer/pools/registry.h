// The simulated pools by name: the one place that knows them all.
#pragma once

#include "analyzer/pools/pool.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PoolPlan;

// How a pool keeps memory of different streams apart.
enum class StreamRule : std::uint8_t {
    kIgnored,   // not at all: one stream is assumed, or the pool waits before it reuses
    kSegments,  // a segment serves one stream; a freed block waits for the other streams' events
};

// What a pool is made from. `config` is in the pool's own language; empty = defaults.
struct PoolSetup {
    std::string_view config;
    std::unique_ptr<Device> device;
    std::vector<std::uint64_t> stream_handles;  // raw handle per StreamId
    PytorchRules rules;                         // of the release of PyTorch
    std::shared_ptr<const PoolPlan> plan = {};  // of a pool that follows one
};

struct PoolDescription {
    std::string_view name = {};
    std::string_view description = {};  // one line
    // How a PyTorch program gets it; empty = it cannot, and `not_usable` says why.
    std::string_view usable_by = {};
    std::string_view not_usable = {};
    // A model that is an interval: its settings are those of the upper end, with these added it is
    // the lower one. Else empty.
    std::string_view lower_config = {};
    // Not a pool that could be built: what its peak of reserved memory bounds. Else empty.
    std::string_view bound = {};
    bool keeps = false;    // empty_cache() gives nothing back
    bool moves = false;    // its blocks have no lasting places
    bool planned = false;  // needs a plan of all requests (replay/script_plan.h)
    StreamRule streams = StreamRule::kIgnored;
    // Errors are kUsage.
    Result<std::unique_ptr<Pool>> (*make)(PoolSetup setup) = nullptr;
};

// In the order in which they are listed for people.
const std::vector<PoolDescription>& known_pools();
// nullptr: there is none of this name.
const PoolDescription* find_pool(std::string_view name);
// "pytorch, none, ...".
std::string pool_names();
// The bound of known_pools(); empty for pools, and for names that are not known.
std::string_view pool_bound(std::string_view name);

Result<std::unique_ptr<Pool>> make_pool(std::string_view name,
                                        std::string_view config,
                                        std::unique_ptr<Device> device,
                                        std::vector<std::uint64_t> stream_handles = {},
                                        const PytorchRules& rules = {});

}  // namespace fragtrace::analyzer
