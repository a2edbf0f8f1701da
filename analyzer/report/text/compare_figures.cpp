#include "analyzer/report/text/compare_figures.h"

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

// "A runs out of memory once, B never."; empty if the numbers are equal.
std::string times_sentence(const char* what, std::uint64_t a, std::uint64_t b) {
    if (a == b) {
        return "";
    }
    return a == 0 ? fmt::format(" A never {}, B {}.", what, times_words(b))
                  : fmt::format(" A {} {}, B {}.", what, times_words(a), times_words(b));
}

std::string ooms_sentence(const RunFigures& a, const RunFigures& b) {
    return times_sentence("runs out of memory", a.ooms, b.ooms);
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
    return text + ooms_sentence(a, b) + times_sentence("retries", a.retries, b.retries);
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

}  // namespace fragtrace::analyzer
