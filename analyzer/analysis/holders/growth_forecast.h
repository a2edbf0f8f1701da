// When growth would fill the card, were it to go on (docs/metrics.md, Growth). Plain data.
#pragma once

#include "analyzer/analysis/holders/growth.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// Growth is what a report speaks of first if the card is full within so many times the recorded
// iterations.
inline constexpr std::uint64_t kForecastTimes = 100;

struct GrowthForecast {
    std::uint64_t bytes_per_iteration = 0;  // of all places that do not slow down; > 0
    std::uint64_t grown_bytes = 0;          // by them, within the record
    std::uint64_t recorded_iterations = 0;
    bool capacity_known = false;
    std::uint64_t left_bytes = 0;    // that growth can still take; 0 where no capacity is known
    std::uint64_t at_iteration = 0;  // about when nothing is left; 0 where no capacity is known
    bool matters = false;            // the report names it first
};

// What a run without an out-of-memory needs.
struct GrowthRoom {
    bool capacity_known = false;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    std::uint64_t needed_bytes = 0;   // in use at the peak, and free where it cannot be used
    std::uint64_t retried_bytes = 0;  // the largest request that needed a retry; 0 = none did
};

// Of the places that do not slow down; none: there is no such place.
std::optional<GrowthForecast> forecast_growth(const Growth& growth, const GrowthRoom& room);

}  // namespace fragtrace::analyzer
