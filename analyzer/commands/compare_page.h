// The page of `fraganalyze compare A B --html`: the comparison, and both runs completely.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/analysis/compare/comparison.h"
#include "analyzer/support/result.h"

#include <string>

namespace fragtrace::analyzer {

struct ComparePageRequest {
    std::string path_a;
    std::string path_b;
    std::string html;  // "-" is standard output
    AnalyzeOptions options;
};

// Reads and analyses one run after the other, so that memory is needed for one only. Errors
// (kInput): a run cannot be read, or none has device memory.
Status write_compare_page(const ComparePageRequest& request, const Comparison& comparison);

}  // namespace fragtrace::analyzer
