// The JSON of advice, capacity scans and near misses, a list over all devices each.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {

// Keys of a what-if row beyond those of its result.
// The kind of a bound; null for other classes.
nlohmann::ordered_json kind_or_null(BoundKind kind);

// Null where no request of the pool failed.
nlohmann::ordered_json forecast_json(const DeviceAnalysis& device);

void add_row_details(const WhatIfRow& row,
                     const DeviceAnalysis& device,
                     nlohmann::ordered_json* json);

nlohmann::ordered_json advice_json(const Analysis& analysis);
nlohmann::ordered_json scans_json(const Analysis& analysis);
nlohmann::ordered_json near_misses_json(const Analysis& analysis);

}  // namespace fragtrace::analyzer
