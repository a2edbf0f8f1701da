// The text of the page's cards: headings, sentences, and the bars for the sizes in a sentence.
// Nothing is measured here.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/culprit.h"
#include "analyzer/report/page/page_data.h"

#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Headline of a failed request: the rung of the ladder (docs/metrics.md) that served it.
std::string heading_of(const Verdict& verdict);
std::vector<PageBar> failure_bars(const Verdict& verdict);

std::string retry_sentence(const Analysis& analysis, const Diagnosis& retry);
std::vector<PageBar> retry_bars(const Diagnosis& retry);

// The headline of a run that grows: the line, its growth per step, and when memory runs out. Empty:
// the culprit is not growth.
std::string growth_heading(const Culprit& culprit, const DeviceAnalysis& device);
std::string peak_heading(const Analysis& analysis, const DeviceAnalysis& device);
std::string peak_sentence(const Analysis& analysis, const DeviceAnalysis& device);
// Bars for used, unusable free, cached and unreserved memory. Together they are the capacity.
std::vector<PageBar> peak_bars(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
