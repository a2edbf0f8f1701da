// Pools other than PyTorch's as rows: which are tried, and what is said of them.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Pools other than PyTorch's, at the recorded capacity (docs/pools.md).
std::vector<Candidate> pool_candidates(const SweepContext& context, std::uint64_t total_bytes);

// Settings of the lower end of a pool that is a model with two ends; nullopt for all others.
std::optional<std::string> lower_end(const Candidate& candidate);

// Says of a row of another pool than PyTorch's whether a PyTorch program can use it, and that it is
// an estimate.
void describe_pool(WhatIfRow* row);

}  // namespace fragtrace::analyzer
