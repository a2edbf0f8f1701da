// What somebody takes home from a device's report: who it is, and the one change to make. Picked
// from what was measured and put into words; nothing is measured here.
#pragma once

#include "analyzer/report/analysis.h"

#include <string>

namespace fragtrace::analyzer {

// Names of the program are in it as they are: escape them for the place where they are shown.
struct Conclusion {
    std::string culprit;  // the line of the program, and what it does; empty: nobody in particular
    std::string remedy;   // what to change, what replaying it said, and how certain that is
};

// Of the first out-of-memory; without one, of the peaks.
Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device);

// The best row that is worth naming: serves what the record did not, or reserves at least 2 %
// less without retries. nullptr: nothing tried helps.
const WhatIfRow* best_remedy(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
