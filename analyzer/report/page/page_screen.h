// Chooses the first screen of a card: the question that it answers. The verdict and the culprit of
// the analysis decide. Nothing else on the page depends on the situation of the run.
#pragma once

#include "analyzer/analysis/culprit.h"
#include "analyzer/report/page/page_data.h"

#include <string_view>

namespace fragtrace::analyzer {

// The screen of a card. `verdict`: of a failed request; nullptr = the card is about the peak.
PageScreen screen_of(PageCardKind kind,
                     const Verdict* verdict,
                     const Culprit& culprit,
                     bool has_blockers);

// The question in words, which is the heading of the panel beside the verdict.
std::string_view question_of(PageScreen screen);

}  // namespace fragtrace::analyzer
