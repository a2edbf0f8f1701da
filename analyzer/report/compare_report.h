// `fraganalyze compare`: two runs held against each other, for people and for programs.
#pragma once

#include "analyzer/analysis/compare/batch.h"
#include "analyzer/analysis/compare/comparison.h"
#include "analyzer/support/terminal.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// At most one screen; the sentence first.
std::string compare_text(const Comparison& comparison, const Terminal& terminal);

// docs/schema/compare.json describes the keys.
std::string compare_json(const Comparison& comparison,
                         const std::vector<BatchPrediction>& batches = {});

// What another batch would need.
std::string batch_text(const BatchPrediction& prediction, const Terminal& terminal);

}  // namespace fragtrace::analyzer
