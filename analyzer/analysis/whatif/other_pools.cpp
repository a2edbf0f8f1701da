#include "analyzer/analysis/whatif/other_pools.h"

#include "analyzer/pools/device.h"
#include "analyzer/pools/registry/pool_registry.h"

#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

struct OtherPool {
    std::string_view pool;
    std::string_view config = {};
    bool takes_share = false;  // reserves a share of the card up front
};

// If a pool takes a share, it is also tried with settings that let it grow. Only these show what it
// needs.
constexpr std::array<OtherPool, 7> kPools = {{
    {"none"},
    {"cuda-async"},
    {"rmm-pool", "initial_pool_size:256MiB"},
    {.pool = "rmm-arena", .takes_share = true},
    {.pool = "bfc", .takes_share = true},
    {"bfc", "preallocate:0"},
    {"best-fit"},
}};

}  // namespace

std::vector<Candidate> pool_candidates(const SweepContext& context, std::uint64_t total_bytes) {
    std::vector<Candidate> candidates;
    for (const auto& [pool, config, takes_share] : kPools) {
        if (takes_share && context.recorded_capacity_bytes >= kUnlimitedBytes) {
            continue;  // the share of an unknown card is unknown
        }
        candidates.push_back(
            {.name = config.empty() ? std::string(pool) : fmt::format("{}:{}", pool, config),
             .pool = std::string(pool),
             .config = std::string(config),
             .capacity_bytes = context.recorded_capacity_bytes,
             .total_bytes = total_bytes});
    }
    return candidates;
}

std::optional<std::string> lower_end(const Candidate& candidate) {
    const PoolDescription* pool = find_pool(candidate.pool);
    if (pool == nullptr || pool->lower_config.empty()) {
        return std::nullopt;
    }
    return candidate.config + (candidate.config.empty() ? "" : ",") +
           std::string(pool->lower_config);
}

void describe_pool(WhatIfRow* row) {
    const PoolDescription* pool = find_pool(row->candidate.pool);
    if (pool == nullptr || pool->name == "pytorch" || !pool->bound.empty()) {
        return;
    }
    row->usable = !pool->usable_by.empty();
    row->usable_reason = row->usable ? pool->usable_by : pool->not_usable;
    const std::string before = row->class_reason.empty() ? "" : "; " + row->class_reason;
    row->row_class = RowClass::kEstimate;
    row->bound_kind = BoundKind::kNone;
    row->class_reason = (row->lower ? "an interval: the driver's method is not public"
                                    : "another pool, simulated by its published rules, with the "
                                      "same requests in the same order") +
                        before;
}

}  // namespace fragtrace::analyzer
