// How an export to Perfetto shows failed requests.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/export/perfetto_file.h"
#include "analyzer/model/request_outcomes.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The name of the instant at which a request failed.
std::string outcome_text(RequestOutcome outcome);

// Appends the verdict, the line to look at and free memory.
void add_diagnosis(const Analysis& analysis,
                   const DeviceAnalysis& device,
                   const Diagnosis& diagnosis,
                   std::vector<PerfettoFile::Argument>* arguments);

}  // namespace fragtrace::analyzer
