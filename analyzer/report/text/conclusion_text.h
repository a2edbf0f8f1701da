// The words of conclusions (analysis/conclusion.h) for report, JSON and page alike. Names of the
// program are in them as they are: escape them for the place where they are shown.
#pragma once

#include "analyzer/analysis/conclusion.h"

#include <string>

namespace fragtrace::analyzer {

// The line of the program, and what it does; empty: nobody in particular.
std::string culprit_text(const Culprit& culprit);

// What to change, what replaying it said, how certain that is, its cost; empty: nothing to say.
std::string remedy_text(const DeviceAnalysis& device, const Recommendation& remedy);

// The row's class where a sentence names what the row does: of a row that gets past the failed
// request the class of what the sentence says up to there.
std::string class_in_sentence(const WhatIfRow& row);
// What is known of the requests after one that a row gets past; empty for other rows.
std::string what_follows(const WhatIfRow& row);

// What the step that failed would need to its end, and what would give it that; empty: no forecast.
std::string forecast_needs(const DeviceAnalysis& device);

// "out of memory at about iteration 430 at this rate (estimate: 12 MiB more with each, 3.6 GiB left
// at iteration 120)"; empty where no capacity is known.
std::string growth_forecast_text(const GrowthForecast& forecast);

}  // namespace fragtrace::analyzer
