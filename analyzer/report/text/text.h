// The report for a terminal or a job's log. It starts with the verdict and fits one screen.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/text/report_line.h"
#include "analyzer/support/terminal.h"

#include <string>

namespace fragtrace::analyzer {

// The whole report. `has_page`: the page was written, so the report does not name its command.
std::string report_text(const Analysis& analysis, const Terminal& terminal, bool has_page = false);

// At most 24 lines, so that they can be pasted together with one more line from the launcher:
// verdict, peaks, main culprits, main remedies, next command.
std::string summary_text(const Analysis& analysis, const Terminal& terminal, bool has_page = false);

// One replay: outcome, peaks, and verdicts of failed requests and retries.
std::string replay_text(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses,
                        const Terminal& terminal);

// All rows of a sweep, per device.
std::string whatif_text(const Analysis& analysis, const Terminal& terminal);

// A table of at most `limit` what-if rows, always including the recorded one. A last line says how
// many are left out, unless `is_short`.
std::string whatif_table(const DeviceAnalysis& device,
                         const std::vector<WhatIfRow>& rows,
                         std::size_t limit,
                         const Terminal& terminal,
                         bool is_short = false);

// Pools other than PyTorch's. Empty if none were replayed.
std::string pools_table(const DeviceAnalysis& device, const Terminal& terminal);

// A row's notes in addition to its numbers: interval, class, use.
std::string whatif_note(const WhatIfRow& row);

// Explains the class words in the device's rows, and why estimates are estimates. The page has a
// line per word.
std::vector<ReportLine> class_explanations(const DeviceAnalysis& device);
std::string class_lines(const DeviceAnalysis& device, const Terminal& terminal);
// The bounds: how far reserved memory could be reduced. Empty if none were replayed.
std::string bounds_table(const DeviceAnalysis& device, const Terminal& terminal);

}  // namespace fragtrace::analyzer
