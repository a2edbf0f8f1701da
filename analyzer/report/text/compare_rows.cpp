#include "analyzer/report/text/compare_rows.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::uint64_t distance(std::uint64_t a, std::uint64_t b) {
    return std::max(a, b) - std::min(a, b);
}

std::string count_difference(std::uint64_t a, std::uint64_t b) {
    return a == b || a == kUnknown64 || b == kUnknown64
               ? ""
               : (b > a ? "+" : "-") + format_count(b > a ? b - a : a - b);
}

std::string share(std::uint64_t a, std::uint64_t b) {
    return a == 0 || a == b
               ? ""
               : fmt::format(" ({:+.1f} %)",
                             100 * (static_cast<double>(b) / static_cast<double>(a) - 1));
}

// The components of reserved memory at the peak. They add up to it.
std::array<std::pair<const char*, std::uint64_t WasteSplit::*>, 6> parts() {
    return {{{"requested", &WasteSplit::requested},
             {"rounding", &WasteSplit::rounding},
             {"slack", &WasteSplit::slack},
             {"pending", &WasteSplit::pending},
             {"releasable", &WasteSplit::releasable},
             {"inactive split", &WasteSplit::inactive_split}}};
}

bool both_known(const DeviceComparison& device) {
    return segments_known(device.a->run) && segments_known(device.b->run);
}

std::uint64_t bytes_change(const LineChange& line) {
    return distance(line.a.value().bytes, line.b.value().bytes);
}

// The line whose memory changed most in the direction of reserved memory; if that is equal, in any
// direction. nullptr: lines do not explain the change, because requested memory did not change in
// this direction, or because no line changed by a quarter of it.
const LineChange* telling_line(const DeviceComparison& device) {
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    const bool equal = a.peak_reserved == b.peak_reserved;
    const bool more = b.peak_reserved > a.peak_reserved;
    const std::uint64_t requested_a = a.waste_at_peak.requested;
    const std::uint64_t requested_b = b.waste_at_peak.requested;
    if (!equal && (more ? requested_b <= requested_a : requested_b >= requested_a)) {
        return nullptr;
    }
    const LineChange* most = nullptr;
    for (const auto* lines : {&device.grew, &device.shrank}) {
        if (lines->empty() || (!equal && (lines == &device.grew) != more)) {
            continue;
        }
        if (most == nullptr || bytes_change(lines->front()) > bytes_change(*most)) {
            most = &lines->front();
        }
    }
    const std::uint64_t least = distance(a.peak_reserved, b.peak_reserved) / 4;
    return most == nullptr || bytes_change(*most) < least ? nullptr : most;
}

std::string line_sentence(const DeviceComparison& device) {
    const LineChange* const line = telling_line(device);
    if (line == nullptr) {
        return "";
    }
    const std::uint64_t a = line->a.value().bytes;
    const std::uint64_t b = line->b.value().bytes;
    return fmt::format(" {} holds {} {} at the peak.",
                       printable(line->label()),
                       format_bytes(distance(a, b)),
                       b > a ? "more" : "less");
}

std::string only_in_one(const DeviceComparison& device) {
    const RunFigures& run = (device.a ? device.a : device.b)->run;
    return fmt::format("Only {} has memory there, {} {} at the peak.",
                       device.a ? "A" : "B",
                       format_bytes(segments_known(run) ? run.peak_reserved : run.peak_allocated),
                       segments_known(run) ? "reserved" : "allocated");
}

std::string times_words(std::uint64_t count) {
    return count == kUnknown64 ? "an unknown number of times"
           : count == 0        ? "never"
           : count == 1        ? "once"
                               : format_count(count) + " times";
}

std::string ooms_sentence(const RunFigures& a, const RunFigures& b) {
    return a.ooms == b.ooms
               ? ""
               : fmt::format(
                     " A runs out of memory {}, B {}.", times_words(a.ooms), times_words(b.ooms));
}

// Without reserved memory, allocated memory and failed requests remain.
std::string headline_without_reserved(const DeviceComparison& device) {
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    std::string text =
        a.peak_allocated == b.peak_allocated
            ? fmt::format("Both allocate {} at their peaks", format_bytes(a.peak_allocated))
            : fmt::format("B allocates {} at its peak, A {}",
                          format_bytes(b.peak_allocated),
                          format_bytes(a.peak_allocated));
    text += fmt::format(". The reserved memory of {} is unknown.",
                        segments_known(b)   ? "A"
                        : segments_known(a) ? "B"
                                            : "both");
    text += ooms_sentence(a, b);
    return text;
}

// The two components of reserved memory that changed most: ": requested +1 GiB, pending -2 MiB".
std::string largest_parts(const RunFigures& a, const RunFigures& b) {
    struct Change {
        const char* name;
        std::uint64_t from;
        std::uint64_t to;
    };

    std::vector<Change> changes;
    for (const auto& [name, part] : parts()) {
        changes.push_back({name, a.waste_at_peak.*part, b.waste_at_peak.*part});
    }
    std::erase_if(changes, [](const Change& change) { return change.from == change.to; });
    std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) {
        return distance(x.from, x.to) > distance(y.from, y.to);
    });
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, changes.size()); ++i) {
        text += fmt::format("{}{} {}",
                            i == 0 ? ": " : ", ",
                            changes[i].name,
                            format_bytes_difference(changes[i].from, changes[i].to));
    }
    return text;
}

// "1st", "2nd", "23rd".
std::string ordinal(std::uint64_t number) {
    const std::uint64_t tens = number % 100;
    const std::uint64_t ones = number % 10;
    const char* ending = tens >= 11 && tens <= 13 ? "th"
                         : ones == 1              ? "st"
                         : ones == 2              ? "nd"
                         : ones == 3              ? "rd"
                                                  : "th";
    return format_count(number) + ending;
}

std::string pair_of(const std::string& a, const std::string& b) {
    return a == b ? a : fmt::format("{} -> {}", a, b);
}

// Reserved memory of both runs, if both inputs show it.
std::string reserved_pair(const Comparison& comparison, std::uint64_t a, std::uint64_t b) {
    return comparison.all_segments_known() ? pair_of(format_bytes(a), format_bytes(b)) : "unknown";
}

ComparePhase phase_row(const Comparison& comparison, const PhaseComparison& phase) {
    ComparePhase row{.name = printable(phase.name), .a = phase.a_time, .b = phase.b_time};
    if (!phase.a || !phase.b) {
        row.only_in = phase.a ? "A" : "B";
        return row;
    }
    const StretchFigures& a = phase.a->figures;
    const StretchFigures& b = phase.b->figures;
    row.count = pair_of(format_count(phase.a->count), format_count(phase.b->count));
    row.allocated = pair_of(format_bytes(a.peak_allocated), format_bytes(b.peak_allocated));
    row.reserved = reserved_pair(comparison, a.peak_reserved, b.peak_reserved);
    row.change =
        pair_of(format_bytes_difference(a.left_bytes), format_bytes_difference(b.left_bytes));
    return row;
}

// "allocated 1 GiB -> 2 GiB, reserved 2 GiB, change 0 B".
std::string stretch_pair(const Comparison& comparison,
                         const StretchFigures& a,
                         const StretchFigures& b) {
    return fmt::format(
        "allocated {}, reserved {}, change {}",
        pair_of(format_bytes(a.peak_allocated), format_bytes(b.peak_allocated)),
        reserved_pair(comparison, a.peak_reserved, b.peak_reserved),
        pair_of(format_bytes_difference(a.left_bytes), format_bytes_difference(b.left_bytes)));
}

// Where to begin two values that are shown with `width` bytes: long ones one word before the word
// in which they differ, because their beginnings can be equal.
std::size_t shown_from(const std::string& a, const std::string& b, std::size_t width) {
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    const auto equal = static_cast<std::size_t>(differ - a.begin());
    if (std::max(a.size(), b.size()) <= width || equal < width / 2) {
        return 0;
    }
    const std::size_t word = a.rfind(' ', equal - 1);
    const std::size_t before =
        word == std::string::npos || word == 0 ? std::string::npos : a.rfind(' ', word - 1);
    return before == std::string::npos ? 0 : before + 1;
}

std::optional<TimeSpan> moment(const std::optional<std::uint64_t>& time_ns) {
    return time_ns ? std::optional(TimeSpan{*time_ns, *time_ns}) : std::nullopt;
}

}  // namespace

std::string compare_headline(const DeviceComparison& device) {
    if (!device.a || !device.b) {
        return only_in_one(device);
    }
    if (!both_known(device)) {
        return headline_without_reserved(device);
    }
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    std::string text =
        a.peak_reserved == b.peak_reserved
            ? fmt::format("Both reserve {} at their peaks", format_bytes(a.peak_reserved))
            : fmt::format("B reserves {} {} than A at its peak{}",
                          format_bytes(distance(a.peak_reserved, b.peak_reserved)),
                          b.peak_reserved > a.peak_reserved ? "more" : "less",
                          share(a.peak_reserved, b.peak_reserved));
    text += largest_parts(a, b) + "." + line_sentence(device);
    if (device.a->state_only || device.b->state_only) {
        return text;
    }
    text += ooms_sentence(a, b);
    if (a.retries != b.retries) {
        text +=
            fmt::format(" Retries: A {}, B {}.", format_count(a.retries), format_count(b.retries));
    }
    return text;
}

std::string compare_state_note(const DeviceComparison& device) {
    if (!device.a || !device.b || !both_known(device) ||
        (!device.a->state_only && !device.b->state_only)) {
        return "";
    }
    return fmt::format("{} a state at one moment: whether requests failed is unknown",
                       !device.b->state_only   ? "A is"
                       : !device.a->state_only ? "B is"
                                               : "Each is");
}

std::vector<CompareFigure> compare_figures(const DeviceComparison& device) {
    std::vector<CompareFigure> rows;
    if (!device.a || !device.b) {
        return rows;
    }
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    const auto bytes = [&rows](const char* name, std::uint64_t in_a, std::uint64_t in_b) {
        rows.push_back({name,
                        format_bytes(in_a),
                        format_bytes(in_b),
                        in_a == in_b ? std::string()
                                     : format_bytes_difference(in_a, in_b) + share(in_a, in_b)});
    };
    const auto counts = [&rows](const char* name, std::uint64_t in_a, std::uint64_t in_b) {
        rows.push_back(
            {name, count_or_unknown(in_a), count_or_unknown(in_b), count_difference(in_a, in_b)});
    };
    if (!both_known(device)) {
        bytes("peak allocated", a.peak_allocated, b.peak_allocated);
        counts("out of memory", a.ooms, b.ooms);
        return rows;
    }
    bytes("peak reserved", a.peak_reserved, b.peak_reserved);
    for (const auto& [name, part] : parts()) {
        bytes(name, a.waste_at_peak.*part, b.waste_at_peak.*part);
        rows.back().name = fmt::format("at it: {}", name);
        rows.back().part = true;
    }
    bytes("peak allocated", a.peak_allocated, b.peak_allocated);
    if (device.a->state_only || device.b->state_only) {
        return rows;
    }
    counts("segments allocated", a.segments_allocated, b.segments_allocated);
    counts("segments released", a.segments_freed, b.segments_freed);
    counts("retries", a.retries, b.retries);
    counts("out of memory", a.ooms, b.ooms);
    if (a.driver_time_ns != 0 && b.driver_time_ns != 0) {
        rows.push_back({"time in driver calls",
                        format_duration(a.driver_time_ns),
                        format_duration(b.driver_time_ns)});
    }
    return rows;
}

std::vector<ComparePhase> different_phases(const Comparison& comparison) {
    std::vector<ComparePhase> rows;
    for (const PhaseComparison& phase : comparison.phases) {
        if (phase.differs()) {
            rows.push_back(phase_row(comparison, phase));
        }
    }
    return rows;
}

std::optional<ComparePlace> first_different_phase(const Comparison& comparison) {
    if (!comparison.first_divergence) {
        return std::nullopt;
    }
    const PhaseComparison& phase = comparison.phases[*comparison.first_divergence];
    return ComparePlace{
        .text = fmt::format("first difference in the {} {}: {}",
                            ordinal(*phase.parts_at + 1),
                            printable(shorten(phase.name, 40)),
                            stretch_pair(comparison, *phase.a_there, *phase.b_there)),
        .a = phase.a_time,
        .b = phase.b_time};
}

std::vector<ComparePlace> compare_steps(const Comparison& comparison) {
    std::vector<ComparePlace> places;
    for (const IterationComparison& row : comparison.iterations) {
        ComparePlace& place = places.emplace_back();
        place.device = row.device;
        place.text = fmt::format(
            "Steps on gpu{}: A {}, B {}{}; ",
            row.device,
            format_count(row.a_count),
            format_count(row.b_count),
            row.from_phases
                ? ""
                : fmt::format(" (estimate: {:.0f} % of the requests recur)", 100 * row.match_rate));
        if (!row.parts_at) {
            place.text += "their peaks are equal";
            continue;
        }
        place.text += fmt::format("first difference in the {}: {}",
                                  ordinal(*row.parts_at + 1),
                                  stretch_pair(comparison, row.a_there, row.b_there));
        place.a = row.a_time;
        place.b = row.b_time;
    }
    return places;
}

std::vector<ComparePlace> different_requests(const Comparison& comparison) {
    std::vector<ComparePlace> places;
    for (const FirstRequest& request : comparison.requests) {
        const auto asked = [](const std::optional<std::uint64_t>& bytes, const std::string& label) {
            return bytes ? fmt::format("{} by {}", format_bytes(*bytes), printable(label))
                         : std::string("no more");
        };
        places.push_back(
            {.text = fmt::format("First different request on gpu{}: the {}; A requests {}, B {}",
                                 request.device,
                                 ordinal(request.number + 1),
                                 asked(request.a_bytes, request.a_label),
                                 asked(request.b_bytes, request.b_label)),
             .device = request.device,
             .a = moment(request.a_ns),
             .b = moment(request.b_ns)});
    }
    return places;
}

std::vector<ComparePlace> parts_read(const Comparison& comparison) {
    if (!comparison.a.is_part() && !comparison.b.is_part()) {
        return {};
    }
    const auto is_part_as_json = [](const RunProfile& run) {
        return run.is_part() && run.source == RunProfile::Source::kJson;
    };
    return {{.text = fmt::format(
                 "Only a part of {} was read: the events around failures, peaks and the end. Peaks "
                 "and counts are of the whole run. Phases, steps and single requests are not "
                 "compared. {}",
                 !comparison.b.is_part()   ? "A"
                 : !comparison.a.is_part() ? "B"
                                           : "each run",
                 is_part_as_json(comparison.a) || is_part_as_json(comparison.b)
                     ? "Write the JSON again with --events all"
                     : "--events all reads everything")}};
}

std::vector<CompareSetting> different_settings(const Comparison& comparison, std::size_t width) {
    std::vector<CompareSetting> rows;
    for (const FactChange& change : comparison.settings) {
        const std::size_t begin = shown_from(change.a, change.b, width);
        const auto value = [begin, width](const std::string& fact) {
            if (fact.empty()) {
                return std::string("(not set)");
            }
            const std::string cut = begin == 0 ? "" : "... ";
            return printable(shorten(cut + fact.substr(std::min(begin, fact.size())), width));
        };
        rows.push_back({printable(change.key), value(change.a), value(change.b)});
    }
    return rows;
}

std::string compared_run(const RunProfile& run) {
    std::string text = shell_quoted(run.path);
    if (!run.command_line.empty()) {
        text += "  " + command_text(run.command_line);
    }
    text += ", " + format_counted(run.events, "event", "events");
    if (run.is_part()) {
        text += fmt::format(", {} of them read", format_count(run.events_read));
    }
    if (run.events_lost != 0) {
        text += fmt::format(", {} LOST: figures may be too low", format_count(run.events_lost));
    }
    return text;
}

}  // namespace fragtrace::analyzer
