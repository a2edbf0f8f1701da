// The output of `fraganalyze compare` as text and as JSON.
#pragma once

#include "analyzer/analysis/compare/batch.h"
#include "analyzer/analysis/compare/comparison.h"
#include "analyzer/support/terminal.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// At most one screen. Starts with the most important sentence.
std::string compare_text(const Comparison& comparison, const Terminal& terminal);

// docs/schema/compare.json describes the keys.
std::string compare_json(const Comparison& comparison,
                         const std::vector<BatchPrediction>& batches = {});

// The memory that other batch sizes would need.
std::string batch_text(const BatchPrediction& prediction, const Terminal& terminal);

}  // namespace fragtrace::analyzer
