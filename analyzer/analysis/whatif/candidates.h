// What is worth trying: the one list of settings and of capacities.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Settings worth trying on any PyTorch trace at the recorded capacity, as far as the release knows
// them; the recorded one first.
std::vector<Candidate> default_settings(const SweepContext& context, std::uint64_t total_bytes);

// Capacities worth trying under the recorded settings: the cards people have.
std::vector<Candidate> default_capacities(const SweepContext& context,
                                          std::uint64_t total_bytes,
                                          std::uint64_t least_bytes,
                                          std::uint64_t most_bytes);

// What no pool can undercut and, unless plans are left out, what a plan reaches; at the recorded
// capacity.
std::vector<Candidate> bound_candidates(const ReplayScript& script,
                                        const SweepContext& context,
                                        std::uint64_t total_bytes,
                                        bool with_plans);

// Memory sizes of cards in common use, ascending, bytes.
std::vector<std::uint64_t> common_cards();

}  // namespace fragtrace::analyzer
