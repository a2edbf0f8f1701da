// What the step that ran out of memory would have needed to its end: an estimate, from the last
// complete step of the same shape (rest_of_iteration.h), replayed. docs/metrics.md, Forecast.
#pragma once

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/analysis/whatif/whatif_row.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Forecast {
    std::string why_not;  // why there is none; empty: all below is set
    EventIndex failed = kNoEvent;
    std::size_t iteration = 0;   // that failed, from 1
    std::size_t basis = 0;       // the step that its rest is taken from, from 1
    double scale = 1;            // of sizes that are others than in the basis, against these
    std::uint64_t requests = 0;  // of the rest
    // To the end of the step, on a card with room for all of it.
    std::uint64_t peak_allocated_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    // Of the capacities tried under the recorded settings the least from which on the step fits.
    std::uint64_t least_capacity_bytes = 0;  // for the pool
    std::uint64_t least_card_bytes = 0;      // with what context and others have
    std::uint64_t shortfall_bytes = 0;       // for the pool, against the recorded capacity
    // The largest size of the step, as a part of the failed one's, that is forecast to fit the
    // recorded capacity; nullopt: the basis has the same sizes, or would fail as well.
    std::optional<double> fitting_part;
    std::string reason;  // why it is an estimate

    [[nodiscard]] bool known() const { return why_not.empty(); }
};

struct ForecastCard {
    std::uint64_t capacity_bytes = 0;  // for the pool
    std::uint64_t others_bytes = 0;    // what context and others have of any card
    std::uint64_t limit_bytes = 0;     // that the process set itself; 0 = none
};

// Of the first request of the pool that the record could not serve; says of the first rows of
// `rows` that get past it (`settings` and remedies, ranked) whether the rest fits.
Result<Forecast> make_forecast(const Timeline& timeline,
                               const ReplayScript& script,
                               const Iterations& iterations,
                               const SweepContext& context,
                               const ForecastCard& card,
                               const std::vector<std::vector<WhatIfRow>*>& rows);

}  // namespace fragtrace::analyzer
