// What "better" means between two replays of the same requests: one order for ranks, remedies,
// combinations and advice (docs/metrics.md, Remedies).
//
// In this order: a row that serves what the record served; fewer out-of-memories; less reserved, of
// which each retry counts as one percent more (a row that lives on retries is at the brink), unless
// both rows run out.
#pragma once

#include "analyzer/whatif/sweep.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

enum class Change : std::uint8_t { kHelps, kHelpsALittle, kNothing, kHurtsALittle, kHurts };

// What the row changes against the recorded run. A little: less than 2 % of what that reserved;
// nothing: less than a page of the driver's, with as many retries, or less reserved by a run that
// ends in its out-of-memory all the same.
Change change_of(const WhatIfRow& row, const WhatIfRow& recorded);

// Better, by 0.5 % at least where both run out as often.
bool is_better(const WhatIfRow& row, const WhatIfRow& other);

// Of rows alike the one with fewer settings comes first, then the one with fewer driver calls.
bool ranks_before(const WhatIfRow& a, const WhatIfRow& b);
// Best first; the recorded row keeps the place that it earns.
void rank(std::vector<WhatIfRow>* rows);

}  // namespace fragtrace::analyzer
