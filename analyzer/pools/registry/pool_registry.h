// All simulated pools by name. Tests compare the man page and the JSON schema with this list.
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

// How a pool separates memory of different streams.
enum class StreamRule : std::uint8_t {
    kIgnored,   // not at all: one stream is assumed, or the pool synchronizes before reuse
    kSegments,  // a segment serves one stream; a freed block waits for other streams' events
};

// The inputs for a new pool. `config` is in the pool's own syntax; empty = defaults.
struct PoolSetup {
    std::string_view config;
    std::unique_ptr<Device> device;
    std::vector<std::uint64_t> stream_handles;  // raw handle per StreamId
    PytorchRules rules;                         // rules of the PyTorch release
    std::shared_ptr<const PoolPlan> plan = {};  // for pools that follow a plan
};

struct PoolDescription {
    std::string_view name = {};
    std::string_view description = {};  // one line
    // How a PyTorch program can use this pool. Empty if it cannot, and `not_usable` says why.
    std::string_view usable_by = {};
    std::string_view not_usable = {};
    // For a model with an upper and a lower bound: the settings to add for the lower bound. Without
    // them the pool simulates the upper bound. Empty for other pools.
    std::string_view lower_config = {};
    // For a theoretical bound, which no real pool can implement: what its peak of reserved memory
    // bounds. Empty for real pools.
    std::string_view bound = {};
    bool keeps = false;    // empty_cache() releases nothing
    bool moves = false;    // its blocks have no fixed addresses
    bool planned = false;  // needs a plan of all requests (replay/script_plan.h)
    StreamRule streams = StreamRule::kIgnored;
    // Errors are kUsage.
    Result<std::unique_ptr<Pool>> (*make)(PoolSetup setup) = nullptr;
};

// In the order of the printed lists.
const std::vector<PoolDescription>& known_pools();
// Returns nullptr for unknown names.
const PoolDescription* find_pool(std::string_view name);
// "pytorch, none, ...".
std::string pool_names();
// PoolDescription::bound of this pool; empty for real pools and unknown names.
std::string_view pool_bound(std::string_view name);

// Whether a text has only settings that PyTorch or another simulated pool defines, with their
// values.
bool is_pool_setting(std::string_view text);

Result<std::unique_ptr<Pool>> make_pool(std::string_view name,
                                        std::string_view config,
                                        std::unique_ptr<Device> device,
                                        std::vector<std::uint64_t> stream_handles = {},
                                        const PytorchRules& rules = {});

}  // namespace fragtrace::analyzer
