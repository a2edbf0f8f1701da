// Estimates the memory that a step which ran out of memory needs to its end. The step is
// completed from the last complete step of the same shape, and replayed (rest_of_iteration.h).
// docs/metrics.md, Forecast.
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
    std::string why_not;  // why there is no forecast; empty: all fields below are set
    EventIndex failed = kNoEvent;
    std::size_t iteration = 0;  // the failed step, from 1
    std::size_t basis = 0;      // the step whose requests complete it, from 1
    // Size of this step's requests relative to the basis, over requests whose size differs.
    double scale = 1;
    std::uint64_t requests = 0;  // added to complete the step
    // Peaks to the end of the step, on a card with enough memory.
    std::uint64_t peak_allocated_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    // False: the step's requested memory alone is at some moment more than the process may use. No
    // setting and no order of the requests can help then.
    bool in_use_fits = true;
    // The smallest tried capacity from which on all tried ones fit the step. Not less than the
    // recorded capacity.
    std::uint64_t least_capacity_bytes = 0;  // for the pool
    std::uint64_t least_card_bytes = 0;      // the same plus context and others
    // Missing bytes for the pool, relative to the recorded capacity or the process's own limit.
    std::uint64_t shortfall_bytes = 0;
    // The largest size of the step, relative to the failed one, that is forecast to fit the
    // recorded capacity. nullopt: the basis is not smaller, or would fail as well.
    std::optional<double> fitting_part;
    std::string reason;  // why it is an estimate

    [[nodiscard]] bool known() const { return why_not.empty(); }
};

struct ForecastCard {
    std::uint64_t capacity_bytes = 0;  // for the pool
    std::uint64_t others_bytes = 0;    // memory that context and others take on any card
    std::uint64_t limit_bytes = 0;     // limit that the process set itself; 0 = none
};

// Forecasts the step of the pool request `failed`, which failed in the recorded run. Also sets
// rest_fits in the first rows of each list in `rows` (settings, remedies; ranked; cards) that get
// past this request, and in all rows, also of `other_pools`, on whose card the step's requested
// memory alone does not fit.
Result<Forecast> make_forecast(const Timeline& timeline,
                               const ReplayScript& script,
                               const Iterations& iterations,
                               const SweepContext& context,
                               EventIndex failed,
                               const ForecastCard& card,
                               const std::vector<std::vector<WhatIfRow>*>& rows,
                               const std::vector<std::vector<WhatIfRow>*>& other_pools = {});

}  // namespace fragtrace::analyzer
