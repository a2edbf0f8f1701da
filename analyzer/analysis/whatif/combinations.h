// Combinations by a greedy search: the best row, with one more change of another kind.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <set>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// One round of a greedy search: the best row so far, with one more change that no part of it is of
// the kind of, the two best values of each kind. Empty: nothing to add. `rows` are all rows so far,
// any order.
std::vector<Candidate> combine(const std::vector<WhatIfRow>& rows,
                               const WhatIfRow& recorded,
                               const SweepContext& context);
// The best of the rows that the program could use; nullptr without any.
const WhatIfRow* best_row(const std::vector<WhatIfRow>& rows, const WhatIfRow& recorded);
// "expandable_segments", "roundup_power2_divisions", ... of a single setting; else empty.
std::string_view setting_key(std::string_view config);
// Those of all settings of `config`, which must outlive them.
std::set<std::string_view> setting_keys(std::string_view config);

}  // namespace fragtrace::analyzer
