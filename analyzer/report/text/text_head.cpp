// The first lines of the text report: the process, the main sentence, the verdict.
#include "analyzer/analysis/conclusion.h"
#include "analyzer/analysis/culprit.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/losses.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

std::string name_in_sentence(const WhatIfRow& row) {
    return row.candidate.remedy == Remedy::kSettings && row.candidate.config.empty()
               ? "The default settings"
               : printable(row.candidate.name);
}

std::string remedy_clause(const DeviceAnalysis& device, const Verdict& verdict) {
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return fmt::format("torch.cuda.empty_cache() just before it would have avoided it ({}).",
                           row_class_name(class_of_moment(device)));
    }
    if (!replay_ends_as_recorded(device)) {
        return "A replay of the recorded settings serves this request, so no remedy is known.";
    }
    const WhatIfRow* remedy = best_remedy(device);
    std::string needs = forecast_needs(device);
    if (!needs.empty()) {
        needs.front() = 'T';  // "the whole step ..." begins a sentence
        needs += ".";
    }
    if (remedy == nullptr) {
        return device.settings.empty() ? needs
                                       : "No usable setting would have avoided it." +
                                             (needs.empty() ? "" : " " + needs);
    }
    if (!needs.empty() && !remedy->rest_fits.value_or(true)) {
        return fmt::format("{} {} gets past this request only ({}).",
                           needs,
                           name_in_sentence(*remedy),
                           class_in_sentence(*remedy));
    }
    const std::string follows = what_follows(*remedy);
    return fmt::format("{} would have {} ({}){}{}.",
                       name_in_sentence(*remedy),
                       remedy->ooms() == 0 ? "avoided it" : "avoided a part of them",
                       class_in_sentence(*remedy),
                       follows.empty() ? "" : "; ",
                       follows);
}

// For an input that does not show why the request failed.
std::string first_failed_request(const Analysis& analysis, const DeviceAnalysis& device) {
    if (device.recorded_troubles.empty()) {
        return "";
    }
    const EventIndex first = device.recorded_troubles.front().event;
    const Event& event = analysis.timeline.events[first];
    if (event.kind == EventKind::kCallOutOfMemory) {
        return "";  // the report begins with it
    }
    return fmt::format("  request    the first that failed: {} at {}{}; the cause is unknown\n",
                       format_bytes(event.size_bytes),
                       format_duration(event.time_ns),
                       phase_suffix(analysis, first));
}

std::string failures_of_import(const Analysis& analysis, const RunFigures& run) {
    if (run.ooms != 0) {
        return format_counted(run.ooms, "request", "requests") + " failed for lack of memory.";
    }
    return shows_failures(analysis.timeline.facts) ? "No out-of-memory."
                                                   : "Whether a request failed is unknown.";
}

}  // namespace

std::string fidelity_percent(std::uint64_t equal, std::uint64_t all) {
    if (equal == all) {
        return "100.00 %";
    }
    const double value = 100.0 * static_cast<double>(equal) / static_cast<double>(all);
    return fmt::format("{:.2f} %", std::floor(value * 100) / 100);
}

std::string count_or_unknown(std::uint64_t count) {
    return count == kUnknown64 ? "unknown" : format_count(count);
}

std::string shorten(std::string_view text, std::size_t width) {
    if (text.size() <= width) {
        return std::string(text);
    }
    return std::string(text.substr(0, width - 3)) + "...";
}

std::string first_line(const Analysis& analysis, const Terminal& terminal) {
    const Timeline& timeline = analysis.timeline;
    const std::uint64_t end_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    std::string text =
        terminal.styled(Style::kBold, command_text(timeline.fact("command_line", timeline.path)));
    if (timeline.facts.contains("import")) {
        return text + fmt::format("  {}, {}, {}\n",
                                  printable(timeline.fact("import")),
                                  format_duration(end_ns),
                                  format_counted(timeline.events.size(), "event", "events"));
    }
    if (timeline.facts.contains("snapshot.entries")) {
        const std::uint64_t entries = parse_count(timeline.fact("snapshot.entries"));
        if (entries == 0) {
            return text + "  PyTorch memory snapshot, no history\n";
        }
        return text + fmt::format("  PyTorch memory snapshot, {}, {} of history{}\n",
                                  format_duration(end_ns),
                                  format_counted(entries, "entry", "entries"),
                                  timeline.fact("snapshot.ends_in_oom") == "1"
                                      ? ", the last one an out-of-memory"
                                      : "");
    }
    return text + "  " + process_text(timeline) + "\n";
}

std::string part_text(const Timeline& timeline) {
    return timeline.events_in_file == 0
               ? ""
               : fmt::format("{} of the {} events: those around failures, peaks and the end",
                             format_count(timeline.events_read()),
                             format_count(timeline.events_in_file));
}

std::vector<ReportLine> part_lines(const Timeline& timeline) {
    const std::string part = part_text(timeline);
    if (part.empty()) {
        return {};
    }
    return {{"read",
             part + ". Peaks and the numbers of driver calls, failures and retries are of the "
                    "whole run. All else is of the part that was read: steps are counted from the "
                    "begin of its last piece, and replays leave in place what a piece began with. "
                    "--events all reads everything"}};
}

std::string process_text(const Timeline& timeline) {
    const std::uint64_t end_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    std::string text = fmt::format("pid {}, {}{}, {}, {}",
                                   timeline.pid,
                                   timeline.rank < 0 ? "" : fmt::format("rank {}, ", timeline.rank),
                                   format_duration(end_ns),
                                   format_counted(timeline.recorded_events(), "event", "events"),
                                   ending_text(timeline));
    const TraceDamage& damage = timeline.damage;
    if (damage.events_lost != 0) {
        text += fmt::format("; {} LOST", format_counted(damage.events_lost, "event", "events"));
    }
    if (damage.bytes_unreadable != 0) {
        text += fmt::format("; DAMAGED: {} unreadable", format_bytes(damage.bytes_unreadable));
    }
    return text;
}

std::vector<ReportLine> fidelity_lines(const Analysis& analysis, const DeviceAnalysis& device) {
    if (!segments_known(device.recorded)) {
        return {{"fidelity", "not checked: the input shows no placements"}};
    }
    if (!device.fidelity) {
        return {{"fidelity",
                 analysis.program_pools.empty()
                     ? "not measured: no caching pool was recorded"
                     : "not measured here: each pool of the program has its own, see there"}};
    }
    const Fidelity& fidelity = *device.fidelity;
    if (!fidelity.not_judged.empty()) {
        return {{"fidelity", fmt::format("not judged: {}", fidelity.not_judged)}};
    }
    std::vector<ReportLine> lines = {
        {"fidelity",
         fmt::format(
             "{}: the replay reproduces {} of {} and {} of {}",
             fidelity_percent(fidelity.placements_equal + fidelity.segments_equal,
                              fidelity.placements + fidelity.segments),
             format_count(fidelity.placements_equal),
             format_counted(fidelity.placements, "placement", "placements"),
             format_count(fidelity.segments_equal),
             format_counted(fidelity.segments, "cudaMalloc or map", "cudaMallocs or maps"))}};
    if (!fidelity.reason.empty()) {
        add_line(&lines, "", "first difference: " + printable(fidelity.reason));
    }
    return lines;
}

std::string without_diagnosis(const Analysis& analysis, const DeviceAnalysis& device) {
    const std::uint64_t ooms = device.recorded.ooms;
    if (ooms == 0) {
        const std::string failure = pool_failure(analysis, device);
        return failure.empty() ? "No out-of-memory" : failure;
    }
    const std::vector<RecordedTrouble>& troubles = device.recorded_troubles;
    // A call other than an allocation may have failed. The report starts with that failure. Of a
    // trace that was read in part, not all failures may be listed.
    const auto listed = static_cast<std::uint64_t>(
        std::count_if(troubles.begin(), troubles.end(), [](const RecordedTrouble& trouble) {
            return !trouble.retry;
        }));
    const bool only_calls =
        listed == ooms &&
        std::all_of(troubles.begin(), troubles.end(), [&analysis](const RecordedTrouble& trouble) {
            return trouble.retry ||
                   analysis.timeline.events[trouble.event].kind == EventKind::kCallOutOfMemory;
        });
    return only_calls ? "No request ran out of memory"
                      : fmt::format("{}: the cause is unknown",
                                    format_counted(ooms, "out-of-memory", "out-of-memories"));
}

std::string headline(const Analysis& analysis,
                     const DeviceAnalysis& device,
                     const Terminal& terminal) {
    if (const Diagnosis* oom = reported_oom(device)) {
        const std::string remedy = remedy_clause(device, oom->verdict);
        return terminal.styled(Style::kRed, failure_sentence(device, *oom)) +
               (remedy.empty() ? "" : " " + remedy) + "\n";
    }
    const RunFigures& run = device.recorded;
    std::string text = run_sentences(analysis, device);
    const WhatIfRow* remedy = best_remedy(device);
    if (remedy != nullptr && !device.state_only && segments_known(run) && device.fidelity &&
        run.peak_reserved != 0) {
        text += fmt::format(" {} would have reserved {}{} ({}).",
                            name_in_sentence(*remedy),
                            format_bytes(remedy->result.statistics.reserved.peak),
                            remedy->retries() == run.retries
                                ? std::string()
                                : ", with " + format_counted(remedy->retries(), "retry", "retries"),
                            class_in_sentence(*remedy));
    }
    return terminal.styled(Style::kBold, text) + "\n";
}

std::string in_recorded_part(const DeviceAnalysis& device) {
    return adopted_bytes(device.script) == 0 ? "" : " in the recorded part";
}

std::string run_sentences(const Analysis& analysis, const DeviceAnalysis& device) {
    const RunFigures& run = device.recorded;
    if (device.state_only) {
        const std::uint64_t free = run.peak_reserved - std::min(run.peak_reserved, run.peak_active);
        return fmt::format(
            "State at one moment, without history: whether a request failed is unknown. {} "
            "reserved, {} allocated, {} ({}) free in the pool.",
            format_bytes(run.peak_reserved),
            format_bytes(run.peak_allocated),
            format_bytes(free),
            format_percent(free, run.peak_reserved));
    }
    if (!segments_known(run)) {
        return fmt::format("{} Peak allocated {}. {}, so waste is too.",
                           failures_of_import(analysis, run),
                           format_bytes(run.peak_allocated),
                           !reserved_known(run)
                               ? std::string("Reserved memory is unknown")
                               : fmt::format("Peak reserved {}, but its segments are unknown",
                                             format_bytes(run.peak_reserved)));
    }
    const std::string none = without_diagnosis(analysis, device) + ".";
    if (!device.fidelity) {
        return fmt::format("{} At most {} allocated from the driver{}.",
                           none,
                           format_bytes(run.peak_reserved),
                           analysis.program_pools.empty() ? "; no caching pool was recorded" : "");
    }
    if (run.peak_reserved == 0) {
        return none +
               " No driver allocation was recorded: the pool had its memory before the "
               "recording began. Record from the start of the program to see its peaks.";
    }
    const std::uint64_t unused =
        run.peak_reserved - std::min(run.peak_reserved, run.peak_allocated);
    const std::optional<GrowthForecast>& forecast = device.growth_forecast;
    const std::string when = forecast && forecast->matters ? growth_forecast_text(*forecast) : "";
    std::string text = fmt::format(
        "{}{} Peak reserved {}, peak allocated {}. The difference is {} ({} of reserved).",
        none.substr(0, none.size() - 1),
        when.empty() ? in_recorded_part(device) + "." : " yet: " + when + ".",
        format_bytes(run.peak_reserved),
        format_bytes(run.peak_allocated),
        format_bytes(unused),
        format_percent(unused, run.peak_reserved));
    if (run.retries != 0) {
        text += fmt::format(" {}.", format_counted(run.retries, "retry", "retries"));
    }
    return text;
}

namespace {

// A run in which nothing went wrong has no culprit. The page decides in the same way (cards.ts).
const char* culprit_title(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Culprit& culprit) {
    const bool went_well = device.recorded.ooms == 0 && !is_near_miss(device) &&
                           pool_failure(analysis, device).empty() &&
                           !std::holds_alternative<GrowsEachIteration>(culprit);
    return went_well ? "main line" : "culprit";
}

}  // namespace

std::string conclusion_lines(const Analysis& analysis,
                             const DeviceAnalysis& device,
                             const Terminal& terminal) {
    const Conclusion conclusion = conclusion_of(analysis, device);
    std::string text;
    for (const auto& [title, sentence] :
         {std::pair(culprit_title(analysis, device, conclusion.culprit),
                    culprit_text(conclusion.culprit)),
          std::pair("remedy", remedy_text(device, conclusion.remedy))}) {
        if (!sentence.empty()) {
            text += fmt::format(
                "  {:<9}  {}\n", title, terminal.styled(Style::kBold, printable(sentence)));
        }
    }
    return text + printed(tried_lines(device));
}

std::vector<ReportLine> tried_lines(const DeviceAnalysis& device) {
    constexpr std::size_t kMost = 3;
    std::vector<ReportLine> lines;
    for (const Trial& trial : device.trials) {
        if (lines.size() < kMost) {
            add_line(&lines, "tried", tried_text(trial));
        }
    }
    return lines;
}

std::string verdict_line(const DeviceAnalysis& device, const Terminal& terminal) {
    const Diagnosis* oom = reported_oom(device);
    if (oom == nullptr && !device.diagnoses.empty()) {
        const Verdict& retry = device.diagnoses.front().verdict;
        return fmt::format("  retry      {}: {} requested; {}\n",
                           retry.id,
                           format_bytes(retry.requested_bytes),
                           verdict_explanation(retry));
    }
    return oom == nullptr ? ""
                          : fmt::format("  verdict    {}: {}\n",
                                        terminal.styled(Style::kBold, oom->verdict.id),
                                        failure_explanation(device, *oom));
}

std::vector<ReportLine> forecast_lines(const DeviceAnalysis& device) {
    if (!device.forecast) {
        return {};
    }
    const Forecast& forecast = *device.forecast;
    std::vector<ReportLine> lines = {
        {"forecast",
         forecast.known()
             ? "with the recorded settings " + forecast_needs(device) + ": " + forecast.reason
             : "none for the rest of this step: " + forecast.why_not}};
    if (const std::string error = forecast_error(device); !error.empty()) {
        add_line(&lines, "error", "of the forecast: " + error);
    }
    return lines;
}

namespace {

// The line about the out-of-memories before the reported one, or after it: their number, and one of
// them.
std::string other_failures(const Analysis& analysis,
                           const DeviceAnalysis& device,
                           const Diagnosis& reported,
                           bool later) {
    const Diagnosis* shown = nullptr;  // the last one after it, or the first one before it
    std::size_t count = 0;
    for (const Diagnosis& diagnosis : device.diagnoses) {
        if (diagnosis.trouble.outcome != Outcome::kRetryOk && &diagnosis != &reported &&
            (diagnosis.trouble.event > reported.trouble.event) == later) {
            shown = later || shown == nullptr ? &diagnosis : shown;
            ++count;
        }
    }
    if (shown == nullptr) {
        return "";
    }
    const Event& event = analysis.timeline.events[shown->trouble.event];
    const bool all = device.troubles <= device.diagnoses.size();
    std::string culprit = culprit_text(conclusion_at(analysis, device, *shown).culprit);
    if (culprit == culprit_text(conclusion_at(analysis, device, reported).culprit)) {
        culprit.clear();  // it is above
    }
    return fmt::format("{}{}; {}{}: {} requested, {} at {} ({}{}{})",
                       all ? "" : "at least ",
                       format_counted(count, "more out-of-memory", "more out-of-memories"),
                       later ? "" : "the program went on; ",
                       !later ? "the first"
                       : all  ? "the last"
                              : "the last of these",
                       format_bytes(shown->verdict.requested_bytes),
                       printable(analysis.symbols->describe(event.origin)),
                       format_duration(event.time_ns),
                       shown->verdict.id,
                       culprit.empty() ? "" : "; culprit: ",
                       printable(culprit));
}

}  // namespace

namespace {

// A failed request of the pool is explained by the state of the replay.
bool replay_differs(const Analysis& analysis, const Diagnosis& failure) {
    const DeviceId id = analysis.timeline.events.device(failure.trouble.event);
    return failure.verdict.requester == "pool" &&
           std::any_of(analysis.devices.begin(),
                       analysis.devices.end(),
                       [id](const DeviceAnalysis& device) {
                           return device.device == id && device.fidelity &&
                                  device.fidelity->not_judged.empty() && !device.fidelity->exact();
                       });
}

}  // namespace

std::vector<ReportLine> moment_lines(const Analysis& analysis, const Diagnosis& failure) {
    const Verdict& verdict = failure.verdict;
    const Event& event = analysis.timeline.events[failure.trouble.event];
    std::vector<ReportLine> lines = {
        {"state",
         fmt::format("{} allocated, {} reserved; free: {} in the pool (largest free block {}), "
                     "{} on the device",
                     format_bytes(verdict.allocated_bytes),
                     format_bytes(verdict.reserved_bytes),
                     format_bytes(verdict.free_bytes),
                     format_bytes(verdict.largest_hole_bytes),
                     device_free_text(verdict))}};
    if (replay_differs(analysis, failure)) {
        add_line(&lines,
                 "basis",
                 "the verdict and this state are those of the replay, which differs from the "
                 "recorded run: see fidelity");
    }
    for (ReportLine& line : asleep_lines(failure)) {
        lines.push_back(std::move(line));
    }
    add_line(&lines,
             "request",
             fmt::format("{} at {}{}",
                         printable(analysis.symbols->describe(event.origin)),
                         format_duration(event.time_ns),
                         phase_suffix(analysis, failure.trouble.event)));
    return lines;
}

std::vector<ReportLine> other_failure_lines(const Analysis& analysis,
                                            const DeviceAnalysis& device,
                                            const Diagnosis& reported) {
    std::vector<ReportLine> lines;
    add_line(&lines, "earlier", other_failures(analysis, device, reported, false));
    add_line(&lines, "later", other_failures(analysis, device, reported, true));
    return lines;
}

std::string state_lines(const Analysis& analysis, const DeviceAnalysis& device) {
    const Diagnosis* oom = reported_oom(device);
    if (oom == nullptr) {
        return segments_known(device.recorded) ? "" : first_failed_request(analysis, device);
    }
    return printed(moment_lines(analysis, *oom)) +
           printed(other_failure_lines(analysis, device, *oom));
}

}  // namespace fragtrace::analyzer
