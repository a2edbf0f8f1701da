// Placement problems as text, in the form that MiniMalloc reads and writes: a heading with the
// columns id, lower, upper, size in any order (others are ignored), then a buffer a line, live from
// lower up to, not including, upper.
#pragma once

#include "analyzer/plan/lifetimes.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PlacementProblem {
    std::vector<std::string> ids;  // as given
    std::vector<Lifetime> lifetimes;
};

// `name` stands for the text in errors (kInput), which name the line.
Result<PlacementProblem> read_problem(std::string_view text, const std::string& name);

// "id,lower,upper,size,offset", in the order of the problem.
std::string plan_csv(const PlacementProblem& problem, const std::vector<std::uint64_t>& offsets);

}  // namespace fragtrace::analyzer
