// The tables of the text report.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/whatif_rows.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <vector>

namespace fragtrace::analyzer {
namespace {

// Text like "6.5 GiB", or "6.5 GiB to 7.78 GiB" for a model with a lower and an upper bound.
std::string reserved_text(const WhatIfRow& row) {
    const std::string most = format_bytes(row.result.statistics.reserved.peak);
    return row.lower ? format_bytes(row.least_reserved_bytes()) + " to " + most : most;
}

// The difference to the recorded settings; empty if their reserved memory is unknown.
std::string difference_to_recorded(const DeviceAnalysis& device, std::uint64_t reserved_bytes) {
    return reserved_known(device.recorded)
               ? format_bytes_difference(compared_reserved_bytes(device), reserved_bytes)
               : std::string();
}

// A row with the same result as an earlier row of the same kind adds no information.
bool same_result(const WhatIfRow& a, const WhatIfRow& b) {
    return a.ooms() == b.ooms() && a.retries() == b.retries() &&
           a.result.statistics.reserved.peak == b.result.statistics.reserved.peak &&
           a.result.statistics.segments_allocated == b.result.statistics.segments_allocated;
}

// Adds each reason once. Reasons are separated by "; ", because parts of them also occur in other
// rows.
void add_reasons(std::string_view reason, std::vector<std::string>* reasons) {
    while (!reason.empty()) {
        const std::size_t end = std::min(reason.find("; "), reason.size());
        const std::string_view one = reason.substr(0, end);
        if (std::find(reasons->begin(), reasons->end(), one) == reasons->end()) {
            reasons->emplace_back(one);
        }
        reason.remove_prefix(std::min(end + 2, reason.size()));
    }
}

// To what the differences of the rows are; empty if to the recorded run.
std::string compared_with_text(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    const std::uint64_t run_reserved = device.recorded.peak_reserved;
    return recorded != nullptr && reserved_known(device.recorded) &&
                   recorded->result.statistics.reserved.peak != run_reserved
               ? fmt::format(
                     "the recorded run reserved {}; all differences are to the replay of "
                     "its settings",
                     format_bytes(run_reserved))
               : "";
}

}  // namespace

std::string difference_text(const WhatIfRow& row, const DeviceAnalysis& device) {
    const std::uint64_t reserved = row.result.statistics.reserved.peak;
    if (row.is_recorded) {
        return reserved == device.recorded.peak_reserved ? "as recorded" : "replayed";
    }
    return reserved == compared_reserved_bytes(device) ? "same"
                                                       : difference_to_recorded(device, reserved);
}

std::string combinations_text(const DeviceAnalysis& device) {
    if (device.combinations_tried == 0) {
        return "";
    }
    const std::string tested =
        format_counted(device.combinations_tried, "combination", "combinations") + " tested; ";
    return device.combinations_better == 0
               ? tested + "none is better than every single change"
               : tested + "those better than every single change are listed";
}

std::vector<std::string> whatif_remarks(const DeviceAnalysis& device) {
    std::vector<std::string> remarks;
    for (std::string text :
         {compared_with_text(device),
          combinations_text(device),
          std::string(device.plan_left_out
                          ? "offline: not planned for so many requests (fraganalyze whatif)"
                          : "")}) {
        if (!text.empty()) {
            remarks.push_back(std::move(text));
        }
    }
    return remarks;
}

std::string outcome_text(const WhatIfRow& row) {
    if (row.ooms() == 0) {
        const std::string fits = !row.gets_past()               ? "fits"
                                 : row.rest_fits.value_or(true) ? "past the OOM"
                                                                : "past this OOM only";
        return row.retries() == 0 ? fits
                                  : fits + ", " + format_counted(row.retries(), "retry", "retries");
    }
    return row.ooms() == 1 ? "OOM" : fmt::format("{} OOMs", row.ooms());
}

std::string driver_calls(std::uint64_t count, std::string_view native, std::string_view mapped) {
    const char* const plural = count == 1 ? "" : "s";
    return fmt::format("{} {}{} or {}{}", format_count(count), native, plural, mapped, plural);
}

std::string whatif_table(const DeviceAnalysis& device,
                         const std::vector<WhatIfRow>& rows,
                         std::size_t limit,
                         const Terminal& terminal,
                         bool is_short) {
    const WhatIfRow* recorded = recorded_row(rows);
    std::vector<const WhatIfRow*> shown;
    std::size_t alike = 0;
    std::size_t left_out = 0;
    for (const WhatIfRow& row : rows) {
        if (limit < rows.size() && recorded != nullptr && !row.is_recorded &&
            same_result(row, *recorded)) {
            ++alike;
        } else if (shown.size() >= limit && !row.is_recorded) {
            ++left_out;
        } else {
            shown.push_back(&row);
        }
    }
    std::vector<WhatIfCells> cells = {
        {"setting", "outcome", {"reserved", "difference", "segments"}, "class", Style::kDim}};
    for (const WhatIfRow* row : shown) {
        const std::string use =
            row->usable ? "" : "; not usable here: " + printable(row->usable_reason);
        cells.push_back({printable(row->candidate.name),
                         outcome_text(*row),
                         {format_bytes(row->result.statistics.reserved.peak),
                          difference_text(*row, device),
                          format_count(row->result.statistics.segments_allocated)},
                         row->class_text() + use,
                         row->ooms() != 0   ? Style::kRed
                         : row->is_recorded ? Style::kBold
                                            : Style::kPlain});
    }
    std::string text = whatif_rows(cells, terminal);
    if (is_short) {
        return text;
    }
    if (const std::string with = compared_with_text(device); !with.empty()) {
        text += terminal.styled(Style::kDim, "  " + with + "\n");
    }
    if (alike != 0) {
        text += terminal.styled(
            Style::kDim,
            fmt::format("  {} nothing here\n",
                        format_counted(alike, "more setting changes", "more settings change")));
    }
    if (left_out != 0) {
        text += terminal.styled(
            Style::kDim,
            fmt::format(
                "  {} (fraganalyze whatif)\n",
                format_counted(left_out, "setting is not shown", "settings are not shown")));
    }
    return text;
}

std::string whatif_note(const WhatIfRow& row) {
    std::string note;
    if (row.lower) {
        note = reserved_text(row) + " reserved: ";
    }
    note += row.class_reason;
    if (!row.usable_reason.empty()) {
        note += fmt::format("{}in PyTorch: {}{}",
                            note.empty() ? "" : "; ",
                            row.usable ? "" : "no, ",
                            printable(row.usable_reason));
    }
    return note;
}

std::string pools_table(const DeviceAnalysis& device, const Terminal& terminal) {
    if (device.pools.empty()) {
        return "";
    }
    std::string text =
        terminal.styled(Style::kBold, "  other pools (docs/pools.md), estimates") + "\n";
    std::vector<WhatIfCells> cells = {
        {"pool", "outcome", {"reserved", "difference", "segments"}, "in PyTorch", Style::kDim}};
    for (const WhatIfRow& row : device.pools) {
        cells.push_back({row.candidate.name,
                         outcome_text(row),
                         {reserved_text(row),
                          difference_to_recorded(device, row.result.statistics.reserved.peak),
                          format_count(row.result.statistics.segments_allocated)},
                         (row.usable ? "" : "not usable here: ") + printable(row.usable_reason),
                         row.ooms() != 0 ? Style::kRed : Style::kPlain});
    }
    text += whatif_rows(cells, terminal);
    return text;
}

std::vector<ReportLine> class_explanations(const DeviceAnalysis& device) {
    std::set<std::string> words;
    // Reasons, each once. Rows of bounds have their reasons beside them.
    std::vector<std::string> assumed;
    std::vector<std::string> at_least;
    for (const auto* rows :
         {&device.settings, &device.capacities, &device.remedies, &device.bounds}) {
        for (const WhatIfRow& row : *rows) {
            words.insert(row.fails_first() && row.row_class == RowClass::kBound
                             ? std::string("exact until")
                             : row.class_text());
            if (row.row_class == RowClass::kEstimate) {
                add_reasons(row.class_reason, &assumed);
            } else if (row.bound_kind == BoundKind::kAtLeast && rows != &device.bounds) {
                add_reasons(row.class_reason, &at_least);
            }
        }
    }
    std::vector<ReportLine> lines;
    for (const auto& [word, meaning] : class_meanings()) {
        if (words.contains(word)) {
            lines.push_back({word,
                             word == "estimate" ? fmt::format("depends on an assumption: {}",
                                                              fmt::join(assumed, "; or "))
                             : word == "at least" && !at_least.empty()
                                 ? fmt::format("the true value is this or larger: {}",
                                               fmt::join(at_least, "; or "))
                                 : meaning});
        }
    }
    return lines;
}

std::string class_lines(const DeviceAnalysis& device, const Terminal& terminal) {
    std::string text;
    for (const auto& [word, meaning] : class_explanations(device)) {
        text += fmt::format("  {}: {}\n", word, meaning);
    }
    return text.empty() ? text : terminal.styled(Style::kDim, text);
}

std::string bounds_table(const DeviceAnalysis& device, const Terminal& terminal) {
    std::string text;
    for (const WhatIfRow& row : device.bounds) {
        const std::uint64_t reserved = row.result.statistics.reserved.peak;
        text += fmt::format("  {:<19} {:>12} {:>11}  {:<9} {}{}\n",
                            row.candidate.name,
                            format_bytes(reserved),
                            difference_to_recorded(device, reserved),
                            row.class_text(),
                            row.class_reason,
                            row.ooms() == 0
                                ? ""
                                : "; " + outcome_text(row) + " for such an allocator on this card");
    }
    if (device.plan_left_out) {
        text += "  offline             not planned for so many requests: fraganalyze whatif\n";
    }
    return text.empty() ? ""
                        : terminal.styled(Style::kBold,
                                          "Limits of reserved memory for any allocator, and the "
                                          "difference to the recorded run") +
                              "\n" + text;
}

}  // namespace fragtrace::analyzer
