// Reads and writes placement problems as text, in MiniMalloc's format. The heading has the columns
// id, lower, upper and size in any order, and other columns are ignored. Each further line is a
// buffer, which is live in [lower, upper).
#pragma once

#include "analyzer/plan/lifetimes.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct PlacementProblem {
    std::vector<std::string> ids;  // as in the text
    std::vector<Lifetime> lifetimes;
};

// `name` is the name of the text in error messages. Errors are kInput and name the line.
Result<PlacementProblem> read_problem(std::string_view text, const std::string& name);

// Returns "id,lower,upper,size,offset" lines, in the order of the problem.
std::string plan_csv(const PlacementProblem& problem, const std::vector<std::uint64_t>& offsets);

}  // namespace fragtrace::analyzer
