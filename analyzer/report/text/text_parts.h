// Parts of the text report that several of its files use.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/text/report_line.h"
#include "analyzer/support/terminal.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
// Which part of a long trace was read: in a few words, and with what that means for a report. Both
// are empty if all of it was.
std::string part_text(const Timeline& timeline);
std::vector<ReportLine> part_lines(const Timeline& timeline);
// "pid 4711, 3.81 s, 3,475 events, exit code 1": the second half of first_line() of a trace.
std::string process_text(const Timeline& timeline);

// The main sentences of the report. run_sentences(): those about a run without a diagnosed
// out-of-memory, without the remedy.
std::string run_sentences(const Analysis& analysis, const DeviceAnalysis& device);
std::string headline(const Analysis& analysis,
                     const DeviceAnalysis& device,
                     const Terminal& terminal);

// Without a diagnosed out-of-memory: "No out-of-memory", "No request ran out of memory" if another
// call failed, "2 out-of-memories: the cause is unknown".
std::string without_diagnosis(const Analysis& analysis, const DeviceAnalysis& device);
// " in the recorded part" if the pool had memory before the recording began.
std::string in_recorded_part(const DeviceAnalysis& device);

// The verdict of the reported out-of-memory, otherwise of the first retry. Empty if there is
// neither.
std::string verdict_line(const DeviceAnalysis& device, const Terminal& terminal);
// Memory that the rest of the failed step is forecast to need. Empty without an out-of-memory.
std::vector<ReportLine> forecast_lines(const DeviceAnalysis& device);
// Memory at a failure or retry, and the code line of the request.
std::vector<ReportLine> moment_lines(const Analysis& analysis, const Diagnosis& failure);
// The number of out-of-memories before and after the reported one, and one of each.
std::vector<ReportLine> other_failure_lines(const Analysis& analysis,
                                            const DeviceAnalysis& device,
                                            const Diagnosis& reported);
// Both for the reported out-of-memory. Empty without one.
std::string state_lines(const Analysis& analysis, const DeviceAnalysis& device);

// Which code line is responsible and what to change, one line each. Empty if neither is known.
std::string conclusion_lines(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Terminal& terminal);

// Which code holds the memory at the reported out-of-memory, otherwise at the peak: by category,
// and compared with the last good iteration. With `brief` only the one or two most important lines.
std::string holder_lines(const Analysis& analysis, const DeviceAnalysis& device, bool brief);
// The part of holder_lines() that compares a moment with the same place of the last good step:
// the first line has the sums, the second the lines of the program. Empty without such a step.
std::vector<ReportLine> change_lines(const DeviceHolders& held, const Holders& holders);
// The steps of the run, and the peaks of the first and of the later ones. Empty without steps.
std::vector<ReportLine> step_lines(const DeviceAnalysis& device);
// The part of holder_lines() about private pools of PyTorch.
std::vector<ReportLine> private_pool_lines(const DeviceAnalysis& device);

// The categories as reports show them: the kinds of one category of the user are one entry. Most
// bytes first.
struct ShownCategory {
    std::string_view name;  // points into the Holders
    std::uint64_t bytes = 0;
    std::uint64_t should_be_gone = 0;  // of kinds of a step, but older than that

    [[nodiscard]] bool says_old() const;  // whether `should_be_gone` is worth a word
};

std::vector<ShownCategory> shown_categories(const Holders& holders);
bool any_category_known(const Holders& holders);
// How sure the categories are: "estimate: by stack and lifetime".
std::string category_basis(const Analysis& analysis);
// Memory of the card outside the pool, by owner. Parts of 0 bytes are left out.
std::vector<std::pair<std::string, std::uint64_t>> outside_parts(const OutsideMemory& outside);

// Memory that is still live although its purpose has ended, by line.
ReportLine survived_line(const Survivors& survivors);
// The memory that grows with every step, and what survived its purpose. Empty if there is none.
std::vector<ReportLine> growth_lines(const DeviceAnalysis& device);

// The smallest set of live blocks without which the request fits. Empty if none is needed or known.
std::string cheapest_text(const Diagnosis& diagnosis);
// ", still alive 3 steps later": for blocks whose phase or step is over. Otherwise empty.
std::string outlived_text(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const CulpritGroup& group,
                          const Diagnosis& diagnosis);

// Lines about the run as a whole. Each is empty if there is nothing to report.
std::string phase_lines(const Analysis& analysis, const Terminal& terminal);
std::vector<ReportLine> call_lines(const Analysis& analysis);
std::vector<ReportLine> side_lines(const Analysis& analysis);
std::string failed_call_lines(const Analysis& analysis, const Terminal& terminal);

// A call, not an allocation, that failed because memory ran out.
struct FailedCall {
    std::string sentence;
    std::vector<ReportLine> lines;  // the memory at that moment, and the code line of the call
};

struct FailedCalls {
    std::vector<FailedCall> shown;
    std::string more;  // "and 2 more calls ..."; empty: all are shown
};

FailedCalls failed_calls(const Analysis& analysis);
// For a process without devices. Managed memory and memory of other processes belong to no device
// of this process.
std::string no_device_text(const Analysis& analysis);

// Pools of the program's own. With `brief` only those for which memory ran out.
std::string program_pool_lines(const Analysis& analysis, bool brief, const Terminal& terminal);
std::vector<ReportLine> card_lines(const DeviceAnalysis& device);
// " in phase NAME", or nothing.
std::string phase_suffix(const Analysis& analysis, EventIndex event);

// Replays other than single settings. Each is empty if nothing was replayed.
std::string remedies_table(const DeviceAnalysis& device,
                           std::size_t limit,
                           const Terminal& terminal);
std::string advice_heading(const DeviceAnalysis& device);
std::string advice_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::string scan_lines(const DeviceAnalysis& device, const Terminal& terminal);
std::vector<ReportLine> near_miss_lines(const Analysis& analysis, const DeviceAnalysis& device);
// The effect of one piece of advice, without its name.
std::string advice_text(const Advice& advice);

// The cost of a row compared with the recorded run: driver calls, synchronisations, retries, their
// time by recorded averages, and necessary changes of the program. Empty: unknown.
std::string cost_text(const WhatIfRow& row);

// "as recorded", "same", "-60 MiB": reserved memory compared with the recorded settings.
std::string difference_text(const WhatIfRow& row, const DeviceAnalysis& device);
// From which event on the requests of this row differ from the recorded ones. Empty: they do not.
std::string divergence_text(const WhatIfRow& row);
// How many combinations of changes were tested. Empty: none.
std::string combinations_text(const DeviceAnalysis& device);
// What the report says about all rows.
std::vector<std::string> whatif_remarks(const DeviceAnalysis& device);

// "fits", "OOM", "2 OOMs", "fits, 3 retries".
std::string outcome_text(const WhatIfRow& row);

// The recorded run's peaks, waste at peak reserved memory, and driver calls.
std::string memory_lines(const DeviceAnalysis& device, const Terminal& terminal);
// Parts of it. past_pool_lines(): memory allocated while caching was off; empty without such
// memory.
std::vector<ReportLine> past_pool_lines(const RunFigures& run);
// Reserved memory that a sleep mode had unmapped, at most; empty without.
std::vector<ReportLine> asleep_lines(const DeviceAnalysis& device);
// The same at a failure.
std::vector<ReportLine> asleep_lines(const Diagnosis& failure);
std::vector<ReportLine> driver_lines(const DeviceAnalysis& device);
// The device's name and the settings in force.
std::vector<ReportLine> device_lines(const Analysis& analysis, const DeviceAnalysis& device);

// Free blocks of a snapshot without history that serve the same requests.
struct HoleRow {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
    std::string serves;  // "each serves one request of up to 2 MiB in the pool of ..."
};

std::string holes_heading(const DeviceAnalysis& device);  // empty = no holes are known
std::vector<HoleRow> hole_rows(const Analysis& analysis, const DeviceAnalysis& device);
// For a snapshot without history: its free blocks and the requests each could serve; at most
// `limit` rows.
std::string hole_lines(const Analysis& analysis,
                       const DeviceAnalysis& device,
                       std::size_t limit,
                       const Terminal& terminal);

// How well the replay matches the recording.
// Outcomes of `fragtrace try`, at most three, newest first.
std::vector<ReportLine> tried_lines(const DeviceAnalysis& device);
std::vector<ReportLine> fidelity_lines(const Analysis& analysis, const DeviceAnalysis& device);

// Text like "176 cudaMallocs or maps": how often the driver allocated or released memory, with the
// words for the two ways.
std::string driver_calls(std::uint64_t count, std::string_view native, std::string_view mapped);

}  // namespace fragtrace::analyzer
