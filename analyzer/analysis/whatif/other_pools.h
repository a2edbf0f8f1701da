// Rows of pools other than PyTorch's: which ones are tried, and how they are described.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Pools other than PyTorch's, at the recorded capacity (docs/pools.md).
std::vector<Candidate> pool_candidates(const SweepContext& context, std::uint64_t total_bytes);

// Settings for the lower end of a pool whose model is an interval; nullopt for all other pools.
std::optional<std::string> lower_end(const Candidate& candidate);

// Sets whether a PyTorch program can use the row's pool, and marks the row as an estimate. Rows of
// PyTorch's own pool and of bounds are not changed.
void describe_pool(WhatIfRow* row);

}  // namespace fragtrace::analyzer
