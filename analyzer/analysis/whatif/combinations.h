// Finds combinations of changes by a greedy search: the best row, extended by one more change.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <set>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// One round of the search: the best row so far, extended by one change of a kind that it does not
// contain yet. Tries the two best values of each kind. Empty: nothing can be added. `rows` are all
// rows so far, in any order.
std::vector<Candidate> combine(const std::vector<WhatIfRow>& rows,
                               const WhatIfRow& recorded,
                               const SweepContext& context);
// The best row that can be combined: usable, of PyTorch's pool, with settings or empty_cache().
// nullptr: none.
const WhatIfRow* best_row(const std::vector<WhatIfRow>& rows, const WhatIfRow& recorded);
// The key of a single setting, such as "expandable_segments"; empty if `config` has several.
std::string_view setting_key(std::string_view config);
// The keys of all settings in `config`. They point into `config`, which must outlive them.
std::set<std::string_view> setting_keys(std::string_view config);

}  // namespace fragtrace::analyzer
