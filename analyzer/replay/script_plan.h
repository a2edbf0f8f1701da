// From a script to the plan that the bound `offline` follows: the lifetimes of its blocks, placed.
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
    // As if everything ran on one stream; else blocks of different streams never share bytes.
    bool one_stream = false;
    // Plan for requests that the recorded run could not serve, too.
    bool with_failed = true;
    std::uint64_t search_work = kQuickSearch;
};

// Lifetimes go from the request to the release, or to the last event of another stream that the
// block waits for; times are steps. All blocks that a CUDA graph's pool has while somebody uses it
// lie in one piece, which is in use as long; a block that is brought back by a checkpoint of its
// pool keeps its place in between.
PoolPlan plan_script(const ReplayScript& script, const ScriptPlanOptions& options);

// make_pool() for a replay of this script: `offline`, whose only setting is "one_stream:True", is
// planned here. A failed request is planned for if the plan then still fits the device.
Result<std::unique_ptr<Pool>> make_pool_for(const ReplayScript& script,
                                            std::string_view name,
                                            std::string_view config,
                                            std::unique_ptr<Device> device);

}  // namespace fragtrace::analyzer
