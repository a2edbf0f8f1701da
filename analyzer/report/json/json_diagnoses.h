// The JSON of failed requests and retries: verdict, ladder, culprits.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace fragtrace::analyzer {

// The diagnoses of retries if `retries` is true, otherwise all other diagnoses.
nlohmann::ordered_json troubles_json(const Analysis& analysis,
                                     const DeviceAnalysis& device,
                                     const std::vector<Diagnosis>& diagnoses,
                                     bool retries);

}  // namespace fragtrace::analyzer
