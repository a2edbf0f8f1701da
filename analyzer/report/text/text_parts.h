// Pieces of the text report that its files share.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// At most `width` bytes; what is cut is marked.
std::string shorten(std::string_view text, std::size_t width);

// What was recorded, how it ended and what was lost.
std::string first_line(const Analysis& analysis, const Terminal& terminal);

// The sentence that the whole report exists for.
std::string headline(const DeviceAnalysis& device, const Terminal& terminal);

// The verdict of the first out-of-memory or else of the first retry; empty without any.
std::string verdict_line(const DeviceAnalysis& device, const Terminal& terminal);
// Memory as the first out-of-memory found it, and who asked; empty without one.
// What the rest of the step that ran out of memory is forecast to need; empty without an OOM.
std::string forecast_line(const DeviceAnalysis& device);
std::string state_lines(const Analysis& analysis, const DeviceAnalysis& device);

// Who it is and what to change, a line each; none where nothing can be said.
std::string conclusion_lines(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Terminal& terminal);

// Who holds the memory at the first out-of-memory, else at the peak: by kind, and against the last
// good iteration. With `brief` the one or two lines that matter most.
std::string holder_lines(const DeviceAnalysis& device, bool brief, const Terminal& terminal);
// What the run holds more of with every iteration; empty where nothing grows.
std::string growth_lines(const DeviceAnalysis& device, const Terminal& terminal);

// Of the run as a whole; each empty where there is nothing to say.
std::string phase_lines(const Analysis& analysis, const Terminal& terminal);
std::string call_lines(const Analysis& analysis);
std::string side_lines(const Analysis& analysis);
std::string failed_call_lines(const Analysis& analysis, const Terminal& terminal);
std::string card_lines(const DeviceAnalysis& device);
// " in phase NAME", or nothing.
std::string phase_suffix(const Analysis& analysis, EventIndex event);

// What was replayed beside settings; each empty where nothing was.
std::string remedies_table(const DeviceAnalysis& device,
                           std::size_t limit,
                           const Terminal& terminal);
std::string advice_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::string scan_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::string near_miss_lines(const Analysis& analysis,
                            const DeviceAnalysis& device,
                            const Terminal& terminal);

// What a row costs against the recorded run: driver calls, synchronisations, retries, their time by
// the recorded means, and what to change in the program. Empty: not known.
std::string cost_text(const WhatIfRow& row);
bool costs_nothing(const WhatIfRow& row);  // it saves calls, and no code has to change

// "fits", "OOM", "2 OOMs", "fits, 3 retries".
std::string outcome_text(const WhatIfRow& row);

// Peaks, waste at the peak of reserved memory, driver calls: of the record.
std::string memory_lines(const DeviceAnalysis& device, const Terminal& terminal);

// Of a state alone: its free blocks, and what each would take; at most `limit` rows.
std::string hole_lines(const Analysis& analysis,
                       const DeviceAnalysis& device,
                       std::size_t limit,
                       const Terminal& terminal);

// How well the replay agrees with the record.
std::string fidelity_line(const DeviceAnalysis& device);

// "176 cudaMallocs or maps": how often the driver gave or took memory, by either way.
std::string driver_calls(std::uint64_t count, std::string_view native, std::string_view mapped);

}  // namespace fragtrace::analyzer
