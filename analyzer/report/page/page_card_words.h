// What stands on the page's cards: headings, sentences, and the bars that show each size of a
// sentence. Nothing is measured here.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/page/page_data.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Of a failed request: the rung of the ladder (docs/metrics.md) that served it, as a headline.
std::string heading_of(const Verdict& verdict);
std::vector<PageBar> failure_bars(const Verdict& verdict);

std::string retry_sentence(const Analysis& analysis, const Diagnosis& retry);
std::vector<PageBar> retry_bars(const Diagnosis& retry);

// Of a run without an out-of-memory. Near: it needed a retry, or at its peak of reserved memory
// less than a tenth of what the pool may use was left.
bool is_near_miss(const DeviceAnalysis& device);
std::string peak_heading(const DeviceAnalysis& device);
std::string peak_sentence(const DeviceAnalysis& device);
// In use, holes, cache and what was left follow each other: together the capacity.
std::vector<PageBar> peak_bars(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
