// Planned placement: computes low offsets for buffers whose lifetimes are known in advance.
// Deterministic: effort is counted and never timed. The height is sufficient for a program that
// repeats itself exactly. It is an upper bound on the optimum and not necessarily the optimum.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Search effort, counted in visits to a buffer: a few seconds, and a fraction of a second.
inline constexpr std::uint64_t kThoroughSearch = 2'000'000'000;
inline constexpr std::uint64_t kQuickSearch = 150'000'000;

struct Plan {
    std::vector<std::uint64_t> offsets;  // one per buffer
    std::uint64_t height_bytes = 0;
    std::uint64_t load_bytes = 0;  // no placement can be lower
    std::string method;            // the algorithm that found it
};

Plan plan_placement(std::span<const Lifetime> lifetimes,
                    std::uint64_t search_work = kThoroughSearch);

}  // namespace fragtrace::analyzer
