#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kLineRows = 8;
constexpr std::size_t kPhaseRows = 10;
constexpr std::size_t kSettingRows = 12;
constexpr std::size_t kValueWidth = 40;

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

std::string run_line(char name, const RunProfile& run) {
    std::string text = fmt::format("{}  {}", name, shell_quoted(run.path));
    if (!run.command_line.empty()) {
        text += "  " + command_text(run.command_line);
    }
    text += ", " + format_counted(run.events, "event", "events");
    if (run.events_lost != 0) {
        text += fmt::format(", {} LOST: figures may be too low", format_count(run.events_lost));
    }
    return text + "\n";
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

// Without reserved memory, allocated memory and failed requests remain.
std::string headline_without_reserved(const DeviceComparison& device, const Terminal& terminal) {
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
    if (a.ooms != b.ooms) {
        text += fmt::format(" Out of memory: A {}, B {} times.",
                            count_or_unknown(a.ooms),
                            count_or_unknown(b.ooms));
    }
    return terminal.styled(Style::kBold, text) + "\n";
}

std::string headline(const DeviceComparison& device, const Terminal& terminal) {
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    if (!both_known(device)) {
        return headline_without_reserved(device, terminal);
    }
    std::string text;
    if (a.peak_reserved == b.peak_reserved) {
        text = fmt::format("Both reserve {} at their peaks", format_bytes(a.peak_reserved));
    } else {
        const bool more = b.peak_reserved > a.peak_reserved;
        text = fmt::format("B reserves {} {} than A at its peak{}",
                           format_bytes(more ? b.peak_reserved - a.peak_reserved
                                             : a.peak_reserved - b.peak_reserved),
                           more ? "more" : "less",
                           share(a.peak_reserved, b.peak_reserved));
    }

    struct Change {
        const char* name;
        std::uint64_t from;
        std::uint64_t to;

        [[nodiscard]] std::uint64_t bytes() const {
            return std::max(from, to) - std::min(from, to);
        }
    };

    std::vector<Change> changes;
    for (const auto& [name, part] : parts()) {
        changes.push_back({name, a.waste_at_peak.*part, b.waste_at_peak.*part});
    }
    std::erase_if(changes, [](const Change& change) { return change.bytes() == 0; });
    std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) {
        return x.bytes() > y.bytes();
    });
    for (std::size_t i = 0; i < std::min<std::size_t>(2, changes.size()); ++i) {
        text += fmt::format("{}{} {}",
                            i == 0 ? ": " : ", ",
                            changes[i].name,
                            format_bytes_difference(changes[i].from, changes[i].to));
    }
    text += ".";
    if (device.a->state_only || device.b->state_only) {
        return terminal.styled(Style::kBold, text) +
               fmt::format("\n{} a state at one moment: whether requests failed is unknown\n",
                           !device.b->state_only   ? "A is"
                           : !device.a->state_only ? "B is"
                                                   : "Each is");
    }
    if (a.ooms != b.ooms) {
        text += fmt::format(
            " Out of memory: A {}, B {} times.", format_count(a.ooms), format_count(b.ooms));
    }
    if (a.retries != b.retries) {
        text +=
            fmt::format(" Retries: A {}, B {}.", format_count(a.retries), format_count(b.retries));
    }
    return terminal.styled(Style::kBold, text) + "\n";
}

std::string figures(const DeviceComparison& device) {
    const RunFigures& a = device.a->run;
    const RunFigures& b = device.b->run;
    std::string text =
        fmt::format("gpu{:<24} {:>12} {:>12}   difference\n", device.device, "A", "B");
    const auto bytes = [&text](std::string_view what, std::uint64_t in_a, std::uint64_t in_b) {
        text += fmt::format(
            "  {:<25} {:>12} {:>12}   {}\n",
            what,
            format_bytes(in_a),
            format_bytes(in_b),
            in_a == in_b ? "" : format_bytes_difference(in_a, in_b) + share(in_a, in_b));
    };
    const auto counts = [&text](std::string_view what, std::uint64_t in_a, std::uint64_t in_b) {
        text += fmt::format("  {:<25} {:>12} {:>12}   {}\n",
                            what,
                            count_or_unknown(in_a),
                            count_or_unknown(in_b),
                            count_difference(in_a, in_b));
    };
    if (!both_known(device)) {
        bytes("peak allocated", a.peak_allocated, b.peak_allocated);
        counts("out of memory", a.ooms, b.ooms);
        return text;
    }
    bytes("peak reserved", a.peak_reserved, b.peak_reserved);
    for (const auto& [name, part] : parts()) {
        bytes(fmt::format("  at it: {}", name), a.waste_at_peak.*part, b.waste_at_peak.*part);
    }
    bytes("peak allocated", a.peak_allocated, b.peak_allocated);
    if (device.a->state_only || device.b->state_only) {
        return text;
    }
    counts("segments allocated", a.segments_allocated, b.segments_allocated);
    counts("segments released", a.segments_freed, b.segments_freed);
    counts("retries", a.retries, b.retries);
    counts("out of memory", a.ooms, b.ooms);
    if (a.driver_time_ns != 0 && b.driver_time_ns != 0) {
        text += fmt::format("  {:<25} {:>12} {:>12}\n",
                            "time in driver calls",
                            format_duration(a.driver_time_ns),
                            format_duration(b.driver_time_ns));
    }
    return text;
}

std::string side(const std::optional<HeldBy>& held) {
    return held ? format_bytes(held->bytes) : "not listed";
}

std::string line_rows(std::string_view title,
                      const std::vector<LineChange>& changes,
                      const Terminal& terminal) {
    if (changes.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, title) + "\n";
    for (std::size_t i = 0; i < std::min(kLineRows, changes.size()); ++i) {
        const LineChange& change = changes[i];
        text += fmt::format(
            "  {:>11}  {:>10} -> {:<10} {}{}\n",
            change.a && change.b ? format_bytes_difference(change.a->bytes, change.b->bytes) : "?",
            side(change.a),
            side(change.b),
            printable(change.label()),
            !change.a || change.a->label == change.label()
                ? ""
                : fmt::format(" (in A {})", printable(change.a->label)));
    }
    if (changes.size() > kLineRows) {
        text += fmt::format("  and {} more (--json has all)\n", changes.size() - kLineRows);
    }
    return text;
}

std::string device_text(const Comparison& comparison,
                        const DeviceComparison& device,
                        const Terminal& terminal) {
    if (!device.a || !device.b) {
        const RunFigures& run = (device.a ? device.a : device.b)->run;
        return fmt::format(
            "gpu{}: only {} has memory there, {} {} at the peak\n",
            device.device,
            device.a ? "A" : "B",
            format_bytes(segments_known(run) ? run.peak_reserved : run.peak_allocated),
            segments_known(run) ? "reserved" : "allocated");
    }
    std::string text = headline(device, terminal) + figures(device);
    text += line_rows("More memory at the peak in B", device.grew, terminal);
    text += line_rows("Less memory at the peak in B", device.shrank, terminal);
    text += line_rows(
        "Not comparable: the JSON lists only the lines with most memory", device.unknown, terminal);
    if (!comparison.a.has_holders || !comparison.b.has_holders) {
        text += fmt::format(
            "  {} does not list memory by line at the peak; use a trace, or the JSON of "
            "summarize\n",
            shell_quoted((comparison.a.has_holders ? comparison.b : comparison.a).path));
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

std::string phase_rows(const Comparison& comparison, const Terminal& terminal) {
    std::string text;
    std::size_t shown = 0;
    std::size_t different = 0;
    for (const PhaseComparison& phase : comparison.phases) {
        different += phase.differs() ? 1 : 0;
        if (!phase.differs() || shown == kPhaseRows) {
            continue;
        }
        ++shown;
        const std::string name = printable(shorten(phase.name, 28));
        if (!phase.a || !phase.b) {
            text += fmt::format("  {:<28} only in {}\n", name, phase.a ? "A" : "B");
            continue;
        }
        const StretchFigures& a = phase.a->figures;
        const StretchFigures& b = phase.b->figures;
        text += fmt::format(
            "  {:<28} {:>10} {:>22} {:>22} {:>20}\n",
            name,
            pair_of(format_count(phase.a->count), format_count(phase.b->count)),
            pair_of(format_bytes(a.peak_allocated), format_bytes(b.peak_allocated)),
            reserved_pair(comparison, a.peak_reserved, b.peak_reserved),
            pair_of(format_bytes_difference(a.left_bytes), format_bytes_difference(b.left_bytes)));
    }
    if (different == 0) {
        return comparison.phases.empty() ? "" : "Phases: equal in both\n";
    }
    std::string head = terminal.styled(Style::kBold, "Phases that differ") + "\n";
    head += fmt::format("  {:<28} {:>10} {:>22} {:>22} {:>20}\n",
                        "phase",
                        "count",
                        "peak allocated",
                        "peak reserved",
                        "change");
    if (different > shown) {
        text += fmt::format("  and {} more (--json has all)\n", different - shown);
    }
    if (comparison.first_divergence) {
        const PhaseComparison& phase = comparison.phases[*comparison.first_divergence];
        text += fmt::format(
            "  first difference in the {} {}: allocated {}, reserved {}, change {}\n",
            ordinal(*phase.parts_at + 1),
            printable(shorten(phase.name, 40)),
            pair_of(format_bytes(phase.a_there->peak_allocated),
                    format_bytes(phase.b_there->peak_allocated)),
            reserved_pair(comparison, phase.a_there->peak_reserved, phase.b_there->peak_reserved),
            pair_of(format_bytes_difference(phase.a_there->left_bytes),
                    format_bytes_difference(phase.b_there->left_bytes)));
    }
    return head + text;
}

std::string step_rows(const Comparison& comparison) {
    std::string text;
    for (const IterationComparison& row : comparison.iterations) {
        text += fmt::format(
            "Steps on gpu{}: A {}, B {}{}; ",
            row.device,
            format_count(row.a_count),
            format_count(row.b_count),
            row.from_phases
                ? ""
                : fmt::format(" (estimate: {:.0f} % of the requests recur)", 100 * row.match_rate));
        if (!row.parts_at) {
            text += "their peaks are equal\n";
            continue;
        }
        text += fmt::format(
            "first difference in the {}: allocated {}, reserved {}, change {}\n",
            ordinal(*row.parts_at + 1),
            pair_of(format_bytes(row.a_there.peak_allocated),
                    format_bytes(row.b_there.peak_allocated)),
            reserved_pair(comparison, row.a_there.peak_reserved, row.b_there.peak_reserved),
            pair_of(format_bytes_difference(row.a_there.left_bytes),
                    format_bytes_difference(row.b_there.left_bytes)));
    }
    return text;
}

std::string request_rows(const Comparison& comparison) {
    std::string text;
    for (const FirstRequest& request : comparison.requests) {
        const auto asked = [](const std::optional<std::uint64_t>& bytes, const std::string& label) {
            return bytes ? fmt::format("{} by {}", format_bytes(*bytes), printable(label))
                         : std::string("no more");
        };
        text += fmt::format("First different request on gpu{}: the {}; A requests {}, B {}\n",
                            request.device,
                            ordinal(request.number + 1),
                            asked(request.a_bytes, request.a_label),
                            asked(request.b_bytes, request.b_label));
    }
    return text;
}

std::string setting_rows(const Comparison& comparison, const Terminal& terminal) {
    if (comparison.settings.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, "Different settings") + "\n";
    for (std::size_t i = 0; i < std::min(kSettingRows, comparison.settings.size()); ++i) {
        const FactChange& change = comparison.settings[i];
        const auto value = [&change](const std::string& fact) {
            const bool command = change.key == "command_line";
            return fact.empty()
                       ? std::string("(not set)")
                       : printable(shorten(command ? command_text(fact) : fact, kValueWidth));
        };
        text += fmt::format(
            "  {:<28} {} -> {}\n", printable(change.key), value(change.a), value(change.b));
    }
    if (comparison.settings.size() > kSettingRows) {
        text += fmt::format("  and {} more (--json has all)\n",
                            comparison.settings.size() - kSettingRows);
    }
    return text;
}

}  // namespace

std::string compare_text(const Comparison& comparison, const Terminal& terminal) {
    std::string text;
    for (const DeviceComparison& device : comparison.devices) {
        text += device_text(comparison, device, terminal);
    }
    if (comparison.devices.empty()) {
        text += "Neither run has device memory.\n";
    }
    text += phase_rows(comparison, terminal);
    text += step_rows(comparison);
    text += request_rows(comparison);
    text += setting_rows(comparison, terminal);
    return text + run_line('A', comparison.a) + run_line('B', comparison.b);
}

}  // namespace fragtrace::analyzer
