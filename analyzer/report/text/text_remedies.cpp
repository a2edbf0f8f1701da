// Text about remedies other than single settings, about popular advice, capacities and near misses.
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/whatif_rows.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kNameWidth = 52;
constexpr std::size_t kCurveShown = 8;

// A remedy for one line of the program begins with the line, which may be long, and ends with the
// change. The end must stay: another row may have the same line.
std::string shorten_remedy(const std::string& name, std::size_t width) {
    constexpr std::array<std::string_view, 2> kChanges = {" in a MemPool", " allocated first"};
    const bool of_line = std::any_of(kChanges.begin(), kChanges.end(), [&](std::string_view end) {
        return name.ends_with(end);
    });
    if (name.size() <= width || !of_line) {
        return shorten(name, width);
    }
    std::size_t begin = name.size() - (width - 3);
    while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xc0) == 0x80) {
        ++begin;  // in the middle of a character
    }
    return "..." + name.substr(begin);
}

std::string more_or_fewer(std::int64_t difference, std::string_view one, std::string_view many) {
    const auto count = static_cast<std::uint64_t>(std::llabs(difference));
    return fmt::format("{} {} {}",
                       format_count(count),
                       difference < 0 ? "fewer" : "more",
                       count == 1 ? one : many);
}

}  // namespace

std::string advice_text(const Advice& advice) {
    std::string text(effect_name(advice.effect));
    if (advice.row.empty()) {
        return text + (advice.reason.empty() ? "" : ": " + printable(advice.reason));
    }
    if (advice.effect == Advice::Effect::kNotUsable) {
        text += ": " + printable(advice.reason) + "; with it";
    } else {
        text += ":";
    }
    text += fmt::format(
        " {}{}{} ({}, {})",
        advice.ooms != 0        ? more_or_fewer(advice.ooms, "OOM, ", "OOMs, ")
        : advice.ooms_left != 0 ? "still out of memory, "
                                : "",
        advice.retries == 0 ? "" : more_or_fewer(advice.retries, "retry, ", "retries, "),
        advice.saved_bytes == 0
            ? "same reserved memory"
            : fmt::format("reserved {}", format_bytes_difference(-advice.saved_bytes)),
        printable(advice.row),
        advice.class_text);
    if (advice.effect != Advice::Effect::kNotUsable && !advice.reason.empty()) {
        text += ", " + printable(advice.reason);
    }
    if (advice.helped + advice.nothing + advice.worse > 1) {
        text += fmt::format("; of {} tested {} helped, {} did nothing, {} made it worse",
                            advice.helped + advice.nothing + advice.worse,
                            advice.helped,
                            advice.nothing,
                            advice.worse);
    }
    return text;
}

namespace {

// The code that the user has to change. Settings need no change of the program.
std::string_view code_of(Remedy remedy) {
    switch (remedy) {
        case Remedy::kEmptyCache:
            return "a change of the program (calls of empty_cache())";
        case Remedy::kMoveFirst:
            return "a change of the program (these requests before all others)";
        case Remedy::kOwnPool:
            return "a change of the program (these requests under torch.cuda.use_mem_pool)";
        default:
            return "";
    }
}

}  // namespace

std::string cost_text(const WhatIfRow& row) {
    if (!row.cost) {
        return "";
    }
    std::vector<std::string> parts;
    const RowCost& cost = *row.cost;
    const auto add = [&](std::int64_t difference, std::string_view one, std::string_view many) {
        if (difference != 0) {
            parts.push_back(more_or_fewer(difference, one, many));
        }
    };
    add(cost.driver_allocs, "cudaMalloc or map", "cudaMallocs or maps");
    add(cost.synchronisations, "synchronisation", "synchronisations");
    add(cost.retries, "retry", "retries");
    if (cost.time_ns && *cost.time_ns != 0) {
        parts.push_back(
            fmt::format("{} {} in these calls",
                        format_duration(static_cast<std::uint64_t>(std::llabs(*cost.time_ns))),
                        *cost.time_ns < 0 ? "less" : "more"));
    }
    if (const std::string_view code = code_of(row.candidate.remedy); !code.empty()) {
        parts.emplace_back(code);
    }
    if (parts.empty()) {
        return "none";
    }
    const bool only_saves = cost.driver_allocs <= 0 && cost.synchronisations <= 0 &&
                            cost.retries <= 0 && cost.time_ns.value_or(0) <= 0 &&
                            code_of(row.candidate.remedy).empty();
    const std::string all = fmt::format("{}", fmt::join(parts, ", "));
    return only_saves ? fmt::format("none ({})", all) : all;
}

std::string divergence_text(const WhatIfRow& row) {
    return row.result.divergence && !row.fails_first()
               ? fmt::format("differs from the recording from event {} on",
                             row.result.divergence->event)
               : "";
}

std::string remedies_table(const DeviceAnalysis& device,
                           std::size_t limit,
                           const Terminal& terminal) {
    if (device.remedies.empty()) {
        return "";
    }
    std::string text =
        terminal.styled(Style::kBold, "  remedies in the program, and combinations") + "\n";
    std::vector<WhatIfCells> cells;
    for (const WhatIfRow& row : device.remedies) {
        if (cells.size() == limit) {
            break;
        }
        const auto difference = static_cast<std::int64_t>(row.result.statistics.reserved.peak) -
                                static_cast<std::int64_t>(compared_reserved_bytes(device));
        std::string note = fmt::format("{}; cost: {}", row.class_text(), cost_text(row));
        if (const std::string differs = divergence_text(row); !differs.empty()) {
            note += "; " + differs;
        }
        if (!row.usable) {
            note += "; not usable here: " + printable(row.usable_reason);
        }
        cells.push_back({shorten_remedy(printable(row.candidate.name), kNameWidth),
                         outcome_text(row),
                         {format_bytes(row.result.statistics.reserved.peak),
                          difference == 0 ? "same" : format_bytes_difference(difference)},
                         std::move(note),
                         row.ooms() != 0 ? Style::kRed : Style::kPlain});
    }
    text += whatif_rows(cells, terminal);
    if (cells.size() < device.remedies.size()) {
        text += fmt::format("  and {} more (fraganalyze whatif)\n", device.remedies.size() - limit);
    }
    if (const std::string tested = combinations_text(device); !tested.empty()) {
        text += terminal.styled(Style::kDim, "  " + tested + "\n");
    }
    return text;
}

std::string advice_heading(const DeviceAnalysis& device) {
    const std::uint64_t adopted = adopted_bytes(device.script);
    return std::string("Popular advice, on this trace") +
           (adopted == 0 ? ""
                         : fmt::format(": {} from before the recorded requests stay as they are",
                                       format_bytes(adopted)));
}

std::string advice_lines(const DeviceAnalysis& device, const Terminal& terminal) {
    if (device.advice.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, advice_heading(device)) + "\n";
    for (const Advice& advice : device.advice) {
        text += fmt::format("  {:<34} {}\n", advice.name, advice_text(advice));
    }
    return text;
}

std::string scan_lines(const DeviceAnalysis& device, const Terminal& terminal) {
    if (device.scans.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, "  smallest card (tested capacities)") + "\n";
    for (const CapacityScan& scan : device.scans) {
        text += fmt::format(
            "  {:<52} smallest capacity for the pool that fits {}, largest that fails {}; {} "
            "tested, {} apart; {}",
            shorten(printable(scan.candidate.name), kNameWidth),
            scan.least_fits == 0 ? "none" : format_bytes(scan.least_fits),
            scan.largest_fails == 0 ? "none" : format_bytes(scan.largest_fails),
            format_count(scan.tried),
            format_bytes(scan.step_bytes),
            scan.least_card_bytes == 0
                ? "no common card fits"
                : fmt::format("cards from {}", format_bytes(scan.least_card_bytes)));
        for (const std::uint64_t card : scan.failing_cards) {
            text += fmt::format(", but not {}", format_bytes(card));
        }
        text += fmt::format("  {}{}{}\n",
                            class_words(scan.row_class, scan.bound_kind),
                            scan.class_reason.empty() ? "" : ": ",
                            scan.class_reason);
    }
    const Adaptation& adaptation = device.adaptation;
    if (adaptation.asks != kNoEvent) {
        text += fmt::format(
            "  the program queries free memory ({}, first at event {}): its requests may differ on "
            "another card\n",
            format_counted(adaptation.asked, "time", "times"),
            adaptation.asks);
    }
    if (adaptation.goes_on != kNoEvent) {
        text += fmt::format(
            "  the program continued after its out-of-memory at event {}: without one its requests "
            "may differ\n",
            adaptation.goes_on);
    }
    return text;
}

std::vector<ReportLine> near_miss_lines(const Analysis& analysis, const DeviceAnalysis& device) {
    if (!device.near_miss) {
        return {};
    }
    const NearMiss& near = *device.near_miss;
    std::vector<ReportLine> lines;
    const auto headroom = [&](std::uint64_t needed) {
        return format_bytes(device.capacity_bytes > needed ? device.capacity_bytes - needed : 0);
    };
    std::string room = headroom(device.recorded.peak_reserved) + " at peak reserved";
    for (const WhatIfRow& row : device.bounds) {
        if (row.candidate.name == "offline" && row.ooms() == 0) {
            room += fmt::format("; {} if a plan of the whole run placed the blocks (offline)",
                                headroom(row.result.statistics.reserved.peak));
        }
    }
    add_line(&lines, "headroom", room);
    if (near.least.event != kNoEvent) {
        add_line(&lines,
                 "tightest",
                 fmt::format("at {} (event {}) the largest request that still fitted was {}{}",
                             format_duration(analysis.timeline.events[near.least.event].time_ns),
                             near.least.event,
                             near.looked_at == near.requests ? "" : "at most ",
                             format_bytes(near.least.bytes)));
        std::vector<std::string> curve;
        const std::size_t stretch = std::max<std::size_t>(1, near.over_time.size() / kCurveShown);
        for (std::size_t i = 0; i < near.over_time.size(); i += stretch) {
            std::uint64_t least = near.over_time[i].bytes;
            for (std::size_t j = i; j < std::min(i + stretch, near.over_time.size()); ++j) {
                least = std::min(least, near.over_time[j].bytes);
            }
            curve.push_back(format_bytes(least));
        }
        add_line(&lines,
                 "over time",
                 fmt::format("the largest request that still fitted, from the first event to the "
                             "last: {}",
                             fmt::join(curve, ", ")));
    }
    const std::size_t steps = device.iteration_ends.ends.size();
    if (steps != 0) {
        const auto per_step = [steps](std::uint64_t count) {
            return static_cast<double>(count) / static_cast<double>(steps);
        };
        add_line(&lines,
                 "per step",
                 fmt::format("{:.2f} cudaMallocs or maps, {:.2f} retries, {} in the driver ({} "
                             "steps, {})",
                             per_step(device.recorded.segments_allocated),
                             per_step(device.recorded.retries),
                             device.recorded.driver_time_ns == 0
                                 ? "time not measured"
                                 : format_duration(device.recorded.driver_time_ns / steps),
                             format_count(steps),
                             device.iteration_ends.phase.empty()
                                 ? "found by recurring requests"
                                 : "phase " + printable(device.iteration_ends.phase)));
    }
    return lines;
}

}  // namespace fragtrace::analyzer
