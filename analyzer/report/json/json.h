// The machine-readable result: one JSON object. docs/schema describes its keys.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <string>

namespace fragtrace::analyzer {

// The whole analysis (`fraganalyze TRACE --json`).
std::string report_json(const Analysis& analysis);

// One replay (`fraganalyze replay --json`): the same keys, for the simulated run. `device` is the
// recorded run. `row` and `diagnoses` describe the replayed run.
std::string replay_json(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses);

// All rows of `fraganalyze whatif --json`.
std::string whatif_json(const Analysis& analysis);

}  // namespace fragtrace::analyzer
