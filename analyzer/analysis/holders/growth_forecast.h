// When growth would fill the card if it continued at the recorded rate (docs/metrics.md, Growth).
// Plain data.
#pragma once

#include "analyzer/analysis/holders/growth.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// The report names growth first if the card is full within this many times the recorded iterations.
inline constexpr std::uint64_t kForecastTimes = 100;

struct GrowthForecast {
    std::uint64_t bytes_per_iteration = 0;  // of all places whose growth does not slow down; > 0
    std::uint64_t grown_bytes = 0;          // growth of these places within the recording
    std::uint64_t recorded_iterations = 0;
    bool capacity_known = false;
    // Memory that growth can still take; 0 if the capacity is not known.
    std::uint64_t left_bytes = 0;
    // Iteration in which about nothing is left; 0 if the capacity is not known.
    std::uint64_t at_iteration = 0;
    bool matters = false;  // the report names it first
};

// The memory that a run without an out-of-memory needs.
struct GrowthRoom {
    bool capacity_known = false;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t peak_reserved_bytes = 0;
    std::uint64_t needed_bytes = 0;   // in use at the peak, plus free memory that cannot be used
    std::uint64_t retried_bytes = 0;  // largest request that needed a retry; 0 = no retries
};

// Uses the places whose growth does not slow down. nullopt: there is no such place.
std::optional<GrowthForecast> forecast_growth(const Growth& growth, const GrowthRoom& room);

}  // namespace fragtrace::analyzer
