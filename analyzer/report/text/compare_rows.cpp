#include "analyzer/report/text/compare_rows.h"

#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

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
