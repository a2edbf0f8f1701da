// Who it is, in words: the line of the program that a report names. Picked from what was measured;
// nothing is measured here. Empty: nobody in particular. Names of the program are in it as they
// are: escape them for the place where they are shown.
#pragma once

#include "analyzer/report/analysis.h"

#include <string>

namespace fragtrace::analyzer {

// A share of the reserved bytes below which nobody needs to be told of waste: one in so many.
inline constexpr std::uint64_t kSmallPart = 50;

std::string culprit_of_failure(const Analysis& analysis,
                               const DeviceAnalysis& device,
                               const Diagnosis& oom);
std::string culprit_of_retry(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Diagnosis& retry);
// Of what the run heads for, else of its first retry, else of the peaks.
std::string culprit_without_failure(const Analysis& analysis, const DeviceAnalysis& device);

// Growth is why the request failed (docs/metrics.md, Culprits).
bool failed_by_growth(const Analysis& analysis, const DeviceAnalysis& device, const Diagnosis& oom);

// "out of memory at about iteration 430 at this rate (estimate: 12 MiB more with each, 3.6 GiB left
// at iteration 120)"; empty where no capacity is known.
std::string growth_forecast_text(const GrowthForecast& forecast);

// Known at each failed request that was looked into, and at the peak of runs without any; else
// nullptr.
const Holders* holders_at(const DeviceAnalysis& device, EventIndex event);

// What an earlier model still holds, where that matters; nullptr: nothing.
const Survivors* kept_model(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
