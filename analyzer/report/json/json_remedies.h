// JSON of advice, capacity scans and near misses. Each is one list over all devices.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {

// Null for rows that are no bounds.
nlohmann::ordered_json kind_or_null(BoundKind kind);

// Null if no request of the pool failed.
nlohmann::ordered_json forecast_json(const DeviceAnalysis& device);

// Adds the keys of a what-if row that its result does not have.
void add_row_details(const WhatIfRow& row,
                     const DeviceAnalysis& device,
                     nlohmann::ordered_json* json);

nlohmann::ordered_json advice_json(const Analysis& analysis);
nlohmann::ordered_json scans_json(const Analysis& analysis);
nlohmann::ordered_json near_misses_json(const Analysis& analysis);

}  // namespace fragtrace::analyzer
