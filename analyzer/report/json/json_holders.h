// Who holds the memory, as JSON: keys in docs/schema.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

namespace fragtrace::analyzer {

// Categories, places and what lies outside of the pool at one instant, and the difference to the
// last good iteration (null without one); null where `event` was not looked into. `at_peak`: of
// the state after the request that made allocated greatest, else of a failed or repeated one.
nlohmann::ordered_json holders_json(const DeviceHolders& held, EventIndex event, bool at_peak);

// The free blocks of a state alone; empty where requests were recorded.
nlohmann::ordered_json holes_json(const Analysis& analysis, const DeviceAnalysis& device);

// The lines that held most at peak reserved.
nlohmann::ordered_json held_lines_json(const DeviceHolders& held);

// Iterations, growth, survivors and peaks of a device.
nlohmann::ordered_json iterations_json(const Analysis& analysis, const DeviceHolders& held);

// null: nothing grows, or memory ran out.
nlohmann::ordered_json growth_forecast_json(const std::optional<GrowthForecast>& forecast);

}  // namespace fragtrace::analyzer
