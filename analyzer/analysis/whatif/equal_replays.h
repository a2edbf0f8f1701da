// Candidates whose replays cannot differ: one answers all of them.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstddef>
#include <vector>

namespace fragtrace::analyzer {

// Per candidate the first one of the list that is replayed the same way: itself, where none is.
// Settings that nothing in the script brings into effect make no difference.
std::vector<std::size_t> first_equal_replay(const ReplayScript& script,
                                            const std::vector<Candidate>& candidates);

}  // namespace fragtrace::analyzer
