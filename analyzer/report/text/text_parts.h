// Parts of the text report that several of its files use.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// "1,234", or "unknown" for kUnknown64.
std::string count_or_unknown(std::uint64_t count);

// The first failed request of a pool of the program's own on this device, as a sentence without a
// period; empty = none.
std::string pool_failure(const Analysis& analysis, const DeviceAnalysis& device);

// "99.97 %", rounded down: 100.00 only if all are equal.
std::string fidelity_percent(std::uint64_t equal, std::uint64_t all);

// Shortens a text to at most `width` bytes and marks the cut.
std::string shorten(std::string_view text, std::size_t width);

// The recorded program, how it ended, and the lost events.
std::string first_line(const Analysis& analysis, const Terminal& terminal);

// The main sentence of the report.
std::string headline(const Analysis& analysis,
                     const DeviceAnalysis& device,
                     const Terminal& terminal);

// Without a diagnosed out-of-memory: "No out-of-memory", "No request ran out of memory" if another
// call failed, "2 out-of-memories: the cause is unknown".
std::string without_diagnosis(const Analysis& analysis, const DeviceAnalysis& device);

// The verdict of the first out-of-memory, otherwise of the first retry. Empty if there is neither.
std::string verdict_line(const DeviceAnalysis& device, const Terminal& terminal);
// forecast_line(): memory that the rest of the failed step is forecast to need. state_lines():
// memory at the first out-of-memory and the code line of the request. Both are empty without an
// out-of-memory.
std::string forecast_line(const DeviceAnalysis& device);
std::string state_lines(const Analysis& analysis, const DeviceAnalysis& device);

// Which code line is responsible and what to change, one line each. Empty if neither is known.
std::string conclusion_lines(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Terminal& terminal);

// Which code holds the memory at the first out-of-memory, otherwise at the peak: by category, and
// compared with the last good iteration. With `brief` only the one or two most important lines.
std::string holder_lines(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         bool brief,
                         const Terminal& terminal);
// The memory that grows with every step. Empty if nothing grows.
std::string growth_lines(const DeviceAnalysis& device, const Terminal& terminal);

// Lines about the run as a whole. Each is empty if there is nothing to report.
std::string phase_lines(const Analysis& analysis, const Terminal& terminal);
std::string call_lines(const Analysis& analysis);
std::string side_lines(const Analysis& analysis);
std::string failed_call_lines(const Analysis& analysis, const Terminal& terminal);
// Pools of the program's own. With `brief` only those for which memory ran out.
std::string program_pool_lines(const Analysis& analysis, bool brief, const Terminal& terminal);
std::string card_lines(const DeviceAnalysis& device);
// " in phase NAME", or nothing.
std::string phase_suffix(const Analysis& analysis, EventIndex event);

// Replays other than single settings. Each is empty if nothing was replayed.
std::string remedies_table(const DeviceAnalysis& device,
                           std::size_t limit,
                           const Terminal& terminal);
std::string advice_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::string scan_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::string near_miss_lines(const Analysis& analysis,
                            const DeviceAnalysis& device,
                            const Terminal& terminal);

// The cost of a row compared with the recorded run: driver calls, synchronisations, retries, their
// time by recorded averages, and necessary changes of the program. Empty: unknown.
std::string cost_text(const WhatIfRow& row);
bool costs_nothing(const WhatIfRow& row);  // it saves calls and needs no code change

// "fits", "OOM", "2 OOMs", "fits, 3 retries".
std::string outcome_text(const WhatIfRow& row);

// The recorded run's peaks, waste at peak reserved memory, and driver calls.
std::string memory_lines(const DeviceAnalysis& device, const Terminal& terminal);

// For a snapshot without history: its free blocks and the requests each could serve; at most
// `limit` rows.
std::string hole_lines(const Analysis& analysis,
                       const DeviceAnalysis& device,
                       std::size_t limit,
                       const Terminal& terminal);

// How well the replay matches the recording.
std::string fidelity_line(const DeviceAnalysis& device);

// Text like "176 cudaMallocs or maps": how often the driver allocated or released memory, with the
// words for the two ways.
std::string driver_calls(std::uint64_t count, std::string_view native, std::string_view mapped);

}  // namespace fragtrace::analyzer
