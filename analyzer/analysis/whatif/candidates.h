// The one list of settings and of capacities worth trying.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Settings worth trying on any PyTorch trace, at the recorded capacity. Settings that the release
// does not know are left out. The recorded settings come first.
std::vector<Candidate> default_settings(const SweepContext& context, std::uint64_t total_bytes);

// Capacities worth trying with the recorded settings: cards in common use.
std::vector<Candidate> default_capacities(const SweepContext& context,
                                          std::uint64_t total_bytes,
                                          std::uint64_t least_bytes,
                                          std::uint64_t most_bytes);

// Lower bounds for every pool and, if `with_plans`, what a plan reaches. All at the recorded
// capacity.
std::vector<Candidate> bound_candidates(const ReplayScript& script,
                                        const SweepContext& context,
                                        std::uint64_t total_bytes,
                                        bool with_plans);

// Memory sizes of cards in common use, ascending, bytes.
std::vector<std::uint64_t> common_cards();

}  // namespace fragtrace::analyzer
