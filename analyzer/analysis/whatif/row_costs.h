// The cost of a row compared with the recorded settings.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>

namespace fragtrace::analyzer {

// Mean time of the recorded calls of one kind, in ns; 0 = not measured.
struct DriverTimes {
    double alloc_ns = 0;
    double free_ns = 0;
    double map_ns = 0;
    double unmap_ns = 0;
};

// Number of waits for the whole device: each cudaFree, each retry, each empty_cache() call that the
// row adds.
std::uint64_t synchronisations(const WhatIfRow& row);
RowCost cost_of(const WhatIfRow& row, const WhatIfRow& recorded, const DriverTimes& times);

}  // namespace fragtrace::analyzer
