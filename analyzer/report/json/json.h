// The machine-readable result: one object. docs/schema describes its keys.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <string>

namespace fragtrace::analyzer {

// Of a whole analysis (`fraganalyze TRACE --json`).
std::string report_json(const Analysis& analysis);

// Of one replay (`fraganalyze replay --json`): same keys, for the simulated run. `device` carries
// the recorded run; `result` and `diagnoses` are the replayed one.
std::string replay_json(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses);

// Of a sweep (`fraganalyze whatif --json`).
std::string whatif_json(const Analysis& analysis);

}  // namespace fragtrace::analyzer
