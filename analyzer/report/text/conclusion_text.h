// The text of conclusions (analysis/conclusion.h), the same in report, JSON and page. Names from
// the program are not escaped: escape the text for its destination.
#pragma once

#include "analyzer/analysis/conclusion.h"

#include <optional>
#include <string>

namespace fragtrace::analyzer {

// What failed, and why: one failed request or retry. If the whole step needs more than there is,
// the sentence does not say "despite free memory", and the explanation is limited to this request.
std::string failure_sentence(const DeviceAnalysis& device, const Diagnosis& diagnosis);
std::string failure_explanation(const DeviceAnalysis& device, const Diagnosis& diagnosis);

// The responsible code line and what it does. Empty if there is none.
std::string culprit_text(const Culprit& culprit);

// The change, and what came of it.
std::string tried_text(const Trial& trial);

// The recommended change, its replayed result, its certainty and its cost. Empty if nothing helps.
std::string remedy_text(const DeviceAnalysis& device, const Recommendation& remedy);

// The setting of a row as an assignment for a shell. Empty if the row is not one of settings, or
// has the default settings.
std::string shell_assignment(const Candidate& candidate);

// The row's class word for a sentence about its effect. For a row that gets past the failed
// request: the class of the replay up to that request.
std::string class_in_sentence(const WhatIfRow& row);
// What is known about the requests after the failed one (WhatIfRow::rest_fits).
std::string rest_text(std::optional<bool> rest_fits);
// The same for a row that gets past the failed request. Else empty.
std::string what_follows(const WhatIfRow& row);

// Memory that the failed step would need until its end, and what would provide it. Empty without a
// forecast.
std::string forecast_needs(const DeviceAnalysis& device);
// How far such forecasts were off in tests. Empty without a forecast of a shortage.
std::string forecast_error(const DeviceAnalysis& device);

// Returns text like "out of memory at about iteration 430 at this rate (estimate: 12 MiB more with
// each, 3.6 GiB left at iteration 120)". Empty if the capacity is unknown.
std::string growth_forecast_text(const GrowthForecast& forecast);

}  // namespace fragtrace::analyzer
