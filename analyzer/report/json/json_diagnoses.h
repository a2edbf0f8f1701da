// The parts of the JSON that are about failed requests and retries: verdict, ladder, culprits.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace fragtrace::analyzer {

// Of the diagnoses those of retries, or the others.
nlohmann::ordered_json troubles_json(const Analysis& analysis,
                                     const DeviceAnalysis& device,
                                     const std::vector<Diagnosis>& diagnoses,
                                     bool retries);

}  // namespace fragtrace::analyzer
