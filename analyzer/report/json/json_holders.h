// JSON of which code holds the memory. Keys: docs/schema.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

namespace fragtrace::analyzer {

// Categories, code lines and memory outside the pool at one instant, and the difference to the last
// good iteration (null if there is none). Null if `event` was not analysed. `at_peak`: the state
// right after the request that reached peak allocated memory. Otherwise the state of a failed or
// retried request.
nlohmann::ordered_json holders_json(const DeviceHolders& held, EventIndex event, bool at_peak);

// The free blocks of a snapshot without history. Empty if requests were recorded.
nlohmann::ordered_json holes_json(const Analysis& analysis, const DeviceAnalysis& device);

// The code lines that held the most memory at peak reserved memory.
// The user's rules and how often each was used; null without rules.
nlohmann::ordered_json category_rules_json(const Analysis& analysis);
nlohmann::ordered_json held_lines_json(const DeviceHolders& held);

// Iterations, growth, survivors and peaks of a device.
nlohmann::ordered_json iterations_json(const Analysis& analysis, const DeviceAnalysis& device);

// Null if nothing grows or if the run ran out of memory.
nlohmann::ordered_json growth_forecast_json(const std::optional<GrowthForecast>& forecast);

}  // namespace fragtrace::analyzer
