// Defines when one replay of the same requests is better than another. Ranks, remedies,
// combinations and advice use this one order (docs/metrics.md, Rank).
//
// The first of these criteria that differs decides:
// 1. no out-of-memory at a request that succeeded in the recorded run;
// 2. fewer out-of-memories;
// 3. if the recorded run ran out of memory: any change other than caching off;
// 4. more saved bytes / (1 + price); if the recorded run ran out of memory, fewer reserved bytes *
//    (1 + price).
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

enum class Change : std::uint8_t { kHelps, kHelpsALittle, kNothing, kHurtsALittle, kHurts };

// How the row changes memory against the recorded run, whatever it costs. "A little" is less than 2
// % of the recorded run's peak reserved. "Nothing" is less than a driver page with as many retries.
// It is also a lower peak of a run that still runs out of memory as often.
Change change_of(const WhatIfRow& row, const WhatIfRow& recorded);

// The price of a row: 0 is free; a row with price 1 must save twice as much. Counts driver requests
// and synchronisations beyond the recorded run's, per request of the program, and the code to
// change. At most 1, but 9 for caching off. So a row that saves half as much always ranks before
// caching off.
double price_of(const WhatIfRow& row, const WhatIfRow& recorded);

// True if a report may recommend the row. It avoids an out-of-memory, or it saves 2 % of peak
// reserved even when the saved bytes are divided by one plus its price.
bool is_worth_its_price(const WhatIfRow& row, const WhatIfRow& recorded);

// True if the row is better. If both run out of memory equally often, it must be better by 0.5 %.
bool is_better(const WhatIfRow& row, const WhatIfRow& other, const WhatIfRow& recorded);

// A row that reserves more bytes than this at its peak is not better than `other`, whatever else it
// does. The largest number if there is no such limit.
std::uint64_t most_reserved_if_better(const WhatIfRow& other, const WhatIfRow& recorded);

// If rows are equal, the one with fewer settings comes first, then the one with fewer driver calls.
bool ranks_before(const WhatIfRow& a, const WhatIfRow& b, const WhatIfRow& recorded);
// Sorts the best row first. The recorded row is ranked like all others.
void rank(std::vector<WhatIfRow>* rows, const WhatIfRow& recorded);

}  // namespace fragtrace::analyzer
