// What somebody takes home from a device's report: who it is, and the one change to make. Picked
// from what was measured and put into words; nothing is measured here.
#pragma once

#include "analyzer/report/analysis.h"

#include <string>

namespace fragtrace::analyzer {

// Names of the program are in it as they are: escape them for the place where they are shown.
struct Conclusion {
    std::string culprit;  // the line of the program, and what it does; empty: nobody in particular
    std::string remedy;   // what to change, what replaying it said, how certain that is, its cost
    std::string row;      // the what-if row that the remedy speaks of; empty: none
};

// Of the first out-of-memory; without one, of the peaks.
Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device);

// Of one failed request or retry.
Conclusion conclusion_at(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& diagnosis);

// Of the cards that were replayed under the recorded settings; nullptr: none. Feasibility is not
// monotone in capacity: the second may be the larger card.
const WhatIfRow* smallest_fitting(const DeviceAnalysis& device);
const WhatIfRow* largest_failing(const DeviceAnalysis& device);

// The row's class where a sentence names what the row does: of a row that gets past the failed
// request the class of what the sentence says up to there.
std::string class_in_sentence(const WhatIfRow& row);
// What is known of the requests after one that a row gets past; empty for other rows.
std::string what_follows(const WhatIfRow& row);

// What the step that failed would need to its end, and what would give it that; empty: no forecast.
std::string forecast_needs(const DeviceAnalysis& device);

// Whether the replay of the recorded settings, on the capacity that is taken, runs out where the
// record did. If not, the capacity is another than is known, and no replay tells what would help.
bool replay_ends_as_recorded(const DeviceAnalysis& device);

// Of what follows from the state of one moment of the recorded run.
RowClass class_of_moment(const DeviceAnalysis& device);

// The row that the device's conclusion recommends: of all settings and remedies the first, in the
// one order (whatif/order.h), that can be used and is worth its price. nullptr: none.
const WhatIfRow* best_remedy(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
