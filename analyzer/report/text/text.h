// The report for a terminal or a job's log: one screen, the verdict first.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// The whole report.
std::string report_text(const Analysis& analysis, const Terminal& terminal);

// At most 24 lines, fit to paste together with one that the launcher adds: verdict, peaks, first
// culprits, first remedies, next command.
std::string summary_text(const Analysis& analysis, const Terminal& terminal);

// One replay: outcome, peaks, verdicts of what did not go smoothly.
std::string replay_text(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses,
                        const Terminal& terminal);

// All rows of a sweep, per device.
std::string whatif_text(const Analysis& analysis, const Terminal& terminal);

// A table of what-if rows; at most `limit` of them, the recorded one always among them. Of the
// others it says how many there are, unless the text is to be short.
std::string whatif_table(const std::vector<WhatIfRow>& rows,
                         std::size_t limit,
                         const Terminal& terminal,
                         bool is_short = false);

// Other pools than PyTorch's; empty where none were replayed.
std::string pools_table(const DeviceAnalysis& device, const Terminal& terminal);

// What is to be said of a row beside its numbers: interval, class, use.
std::string whatif_note(const WhatIfRow& row);

// What the class words of the device's rows mean, and why estimates are estimates.
std::string class_lines(const DeviceAnalysis& device, const Terminal& terminal);
// The bounds: down to what reserved memory could be avoided; empty where none were replayed.
std::string bounds_table(const DeviceAnalysis& device, const Terminal& terminal);

}  // namespace fragtrace::analyzer
