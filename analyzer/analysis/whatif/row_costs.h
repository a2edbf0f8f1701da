// What a row costs against the recorded settings.
#pragma once

#include "analyzer/analysis/whatif/whatif_row.h"

#include <cstdint>

namespace fragtrace::analyzer {

// Means of the recorded calls of one kind, in ns; 0 = not measured.
struct DriverTimes {
    double alloc_ns = 0;
    double free_ns = 0;
    double map_ns = 0;
    double unmap_ns = 0;
};

// Waits for the whole device: a cudaFree, an empty_cache() call, a retry.
std::uint64_t synchronisations(const WhatIfRow& row);
RowCost cost_of(const WhatIfRow& row, const WhatIfRow& recorded, const DriverTimes& times);

}  // namespace fragtrace::analyzer
