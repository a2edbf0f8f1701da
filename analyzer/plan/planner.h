// Planned placement: offsets for buffers whose lifetimes are known beforehand, as low as we find
// them. Deterministic: the effort is counted, never timed. The height is what a program that
// repeats itself can get by with, and an upper bound on the optimum, not the optimum.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// In visits to a buffer: a few seconds, and a fraction of one.
inline constexpr std::uint64_t kThoroughSearch = 2'000'000'000;
inline constexpr std::uint64_t kQuickSearch = 150'000'000;

struct Plan {
    std::vector<std::uint64_t> offsets;  // one per buffer
    std::uint64_t height_bytes = 0;
    std::uint64_t load_bytes = 0;  // no placement is lower
    std::string method;            // what found it
};

Plan plan_placement(std::span<const Lifetime> lifetimes,
                    std::uint64_t search_work = kThoroughSearch);

}  // namespace fragtrace::analyzer
