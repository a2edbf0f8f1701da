// Computes the plan for the bound `offline`: places the blocks of a script by their lifetimes.
#pragma once

#include "analyzer/plan/planner.h"
#include "analyzer/pools/others/offline_pool.h"
#include "analyzer/replay/script.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

struct ScriptPlanOptions {
    // Treat all blocks as if they were on one stream. Otherwise blocks of different streams never
    // share memory.
    bool one_stream = false;
    // Include requests that failed in the recorded run.
    bool with_failed = true;
    std::uint64_t search_work = kQuickSearch;
};

// A lifetime starts at the request. It ends at the release, or at the last cross-stream event that
// the block waits for. Times are step indices. The blocks of a CUDA graph's pool lie in one piece,
// which is in use until the pool has no users any more. A block that a checkpoint of its pool
// restores keeps its place in between.
PoolPlan plan_script(const ReplayScript& script, const ScriptPlanOptions& options);

// Like make_pool(), for a replay of this script. It computes the plan of `offline`, whose only
// setting is "one_stream:True". The plan includes failed requests if it then still fits the device.
Result<std::unique_ptr<Pool>> make_pool_for(const ReplayScript& script,
                                            std::string_view name,
                                            std::string_view config,
                                            std::unique_ptr<Device> device);

}  // namespace fragtrace::analyzer
