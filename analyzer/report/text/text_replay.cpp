// The text of `fraganalyze replay` and `fraganalyze whatif`.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMaxDiagnosesShown = 5;

std::string notes_text(const Analysis& analysis, const Terminal& terminal) {
    std::string text;
    const std::vector<std::string> warnings = warnings_with_stacks(analysis);
    for (const auto& [title, lines] :
         {std::pair{"Assumptions", &analysis.assumptions}, std::pair{"Warnings", &warnings}}) {
        if (!lines->empty()) {
            text += terminal.styled(Style::kBold, title) + "\n";
        }
        for (const std::string& line : *lines) {
            text += "  - " + printable(line) + "\n";
        }
    }
    return text;
}

std::string outcome_headline(const ReplayResult& result) {
    const std::uint64_t ooms = result.ooms();
    const std::uint64_t retries = result.retries();
    if (ooms == 0 && result.requests_served == 0) {
        return "No request was recorded, so nothing was replayed.";
    }
    if (ooms == 0) {
        return fmt::format("Every request is served ({}), {}.",
                           format_count(result.requests_served),
                           format_counted(retries, "retry", "retries"));
    }
    return fmt::format("{} of {} {} out of memory, {}.",
                       format_count(ooms),
                       format_counted(result.requests_served + ooms, "request", "requests"),
                       ooms == 1 ? "runs" : "run",
                       format_counted(retries, "retry", "retries"));
}

std::string class_text(const WhatIfRow& row) {
    std::string text = fmt::format("  class      {}{}{}\n",
                                   row.class_text(),
                                   row.class_reason.empty() ? "" : ": ",
                                   row.class_reason);
    if (row.result.divergence) {
        const PoolStatistics& until = row.result.divergence->statistics;
        text += fmt::format(
            "  differs    from event {} on; until then reserved {} ({} bytes), {}, {}\n",
            row.result.divergence->event,
            format_bytes(until.reserved.peak),
            until.reserved.peak,
            driver_calls(until.segments_allocated, "cudaMalloc", "map"),
            format_counted(row.result.divergence->retries, "retry", "retries"));
    }
    return text;
}

std::string room_text(std::uint64_t capacity_bytes) {
    return capacity_bytes == kUnlimitedBytes ? "no limit (the size of the card is unknown)"
                                             : format_bytes(capacity_bytes) + " for the pool";
}

}  // namespace

std::string replay_text(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const WhatIfRow& row,
                        const std::vector<Diagnosis>& diagnoses,
                        const Terminal& terminal) {
    const Candidate& candidate = row.candidate;
    const RunFigures run = summarize(row.result);
    std::string text = terminal.styled(Style::kBold, outcome_headline(row.result)) + "\n";
    if (const std::string part = part_text(analysis.timeline); !part.empty()) {
        text += fmt::format("  read       {}; --events all replays everything\n", part);
    }
    text += fmt::format("  pool       {}, settings: {}, {}\n",
                        candidate.pool,
                        candidate.config.empty() ? "default" : printable(candidate.config),
                        room_text(candidate.capacity_bytes));
    text +=
        fmt::format("  peaks      requested {}, allocated {}, active {}, reserved {} ({} bytes)\n",
                    format_bytes(run.peak_requested),
                    format_bytes(run.peak_allocated),
                    format_bytes(run.peak_active),
                    format_bytes(run.peak_reserved),
                    run.peak_reserved);
    text += reserved_known(device.recorded)
                ? fmt::format("  recorded   reserved {} ({} bytes)\n",
                              format_bytes(device.recorded.peak_reserved),
                              device.recorded.peak_reserved)
                : std::string("  recorded   reserved unknown\n");
    text += fmt::format("  driver     {}, {}\n",
                        driver_calls(run.segments_allocated, "cudaMalloc", "map"),
                        driver_calls(run.segments_freed, "cudaFree", "unmap"));
    if (row.lower) {
        text += fmt::format("  interval   reserved {} to {} ({} to {} bytes)\n",
                            format_bytes(row.least_reserved_bytes()),
                            format_bytes(run.peak_reserved),
                            row.least_reserved_bytes(),
                            run.peak_reserved);
    }
    text += class_text(row);
    std::size_t shown = 0;
    for (const Diagnosis& diagnosis : diagnoses) {
        if (++shown > kMaxDiagnosesShown) {
            text += fmt::format("  and {} more (--json has all)\n",
                                diagnoses.size() - kMaxDiagnosesShown);
            break;
        }
        text += fmt::format("  event {}: {}\n    {}: {}\n",
                            diagnosis.trouble.event,
                            verdict_sentence(diagnosis.verdict, diagnosis.trouble.outcome),
                            diagnosis.verdict.id,
                            verdict_explanation(diagnosis.verdict));
    }
    return text + notes_text(analysis, terminal);
}

namespace {

std::string settings_text(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Terminal& terminal) {
    if (!device.settings.empty()) {
        return whatif_table(device, device.settings, device.settings.size(), terminal);
    }
    std::string text =
        fmt::format("  not replayed: {}\n",
                    device.no_whatif.empty()
                        ? "PyTorch's allocator, whose settings this command varies, served no "
                          "request on this device"
                        : device.no_whatif);
    if (!analysis.program_pools.empty()) {
        text += "  the report (fraganalyze TRACE) replays the pools of the program's own\n";
    }
    return text;
}

}  // namespace

std::string whatif_text(const Analysis& analysis, const Terminal& terminal) {
    std::string text = printed(part_lines(analysis.timeline));
    for (const DeviceAnalysis& device : analysis.devices) {
        text += terminal.styled(Style::kBold,
                                fmt::format("device {}  {}, {}",
                                            device.device,
                                            printable(device.name),
                                            room_text(device.capacity_bytes))) +
                "\n";
        text += settings_text(analysis, device, terminal);
        if (!device.capacities.empty()) {
            text += terminal.styled(Style::kBold, "  other cards, recorded settings") + "\n";
            text += whatif_table(device, device.capacities, device.capacities.size(), terminal);
        }
        text += remedies_table(device, device.remedies.size(), terminal);
        text += advice_lines(device, terminal);
        text += scan_lines(device, terminal);
        if (device.near_miss) {
            text += terminal.styled(Style::kBold, "Near misses") + "\n" +
                    printed(near_miss_lines(analysis, device));
        }
        text += pools_table(device, terminal);
        text += bounds_table(device, terminal);
        text += class_lines(device, terminal);
    }
    return text + notes_text(analysis, terminal);
}

}  // namespace fragtrace::analyzer
