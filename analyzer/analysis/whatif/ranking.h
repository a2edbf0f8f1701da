// What "better" means between replays of the same requests: one order for ranks, remedies,
// combinations and advice (docs/metrics.md, Rank).
//
// In this order: a row that serves what the record served; fewer out-of-memories; where the record
// ran out of memory, every other change before caching off; then what the row saves against the
// recorded run, divided by one plus its price (where that run ran out: what the row needs,
// multiplied).
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

enum class Change : std::uint8_t { kHelps, kHelpsALittle, kNothing, kHurtsALittle, kHurts };

// What the row changes in memory against the recorded run, whatever it costs. A little: less than
// 2 % of what that reserved; nothing: less than a page of the driver's, with as many retries, or
// less reserved by a run that ends in its out-of-memory all the same.
Change change_of(const WhatIfRow& row, const WhatIfRow& recorded);

// What the row costs: 0 is free, 1 is as much as another that saves half. Requests to the driver
// and synchronisations beyond the recorded run's, per request of the program, and the code to
// change; at most 1, but 9 for caching off, so that no row that saves half as much comes after it.
double price_of(const WhatIfRow& row, const WhatIfRow& recorded);

// The row helps, by 2 % of what was reserved even when divided by its price, or avoids an
// out-of-memory: a report may recommend it.
bool is_worth_its_price(const WhatIfRow& row, const WhatIfRow& recorded);

// Better, by 0.5 % at least where both run out as often.
bool is_better(const WhatIfRow& row, const WhatIfRow& other, const WhatIfRow& recorded);

// Of rows alike the one with fewer settings comes first, then the one with fewer driver calls.
bool ranks_before(const WhatIfRow& a, const WhatIfRow& b, const WhatIfRow& recorded);
// Best first; the recorded row keeps the place that it earns.
void rank(std::vector<WhatIfRow>* rows, const WhatIfRow& recorded);

}  // namespace fragtrace::analyzer
