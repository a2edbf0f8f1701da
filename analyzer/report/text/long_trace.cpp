#include "analyzer/report/text/long_trace.h"

#include "analyzer/analysis/windows.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace fragtrace::analyzer {
namespace {

// Memory that the full report needs (docs/performance.md).
constexpr std::uint64_t kReportBytesPerEvent = 75;

std::string verdict(const TraceSummary& summary) {
    std::uint64_t ooms = 0;
    std::uint64_t retries = 0;
    std::optional<std::uint64_t> first_ns;
    for (const DeviceSummary& device : summary.devices) {
        ooms += device.metrics.summary.ooms;
        retries += device.metrics.summary.retries;
        if (const auto at = device.metrics.first_oom_ns; at) {
            first_ns = std::min(first_ns.value_or(*at), *at);
        }
    }
    const std::string retried = format_counted(retries, "retry", "retries");
    const std::string of_pools =
        summary.pool_failures == 0
            ? ""
            : fmt::format(" Pools of the program's own could not serve {}.",
                          format_counted(summary.pool_failures, "request", "requests"));
    return (ooms == 0
                ? fmt::format(
                      "No out-of-memory{}, {}.", of_pools.empty() ? "" : " of a device", retried)
                : fmt::format("{}{}, {}.",
                              format_counted(ooms, "out-of-memory", "out-of-memories"),
                              first_ns ? ", the first after " + format_duration(*first_ns) : "",
                              retried)) +
           of_pools;
}

}  // namespace

std::string long_trace_text(const TraceSummary& summary,
                            const std::string& path,
                            const Terminal& terminal) {
    const Timeline& tables = summary.tables;
    std::string text = fmt::format("{}  pid {}, {}, {}\n{}\n",
                                   command_text(tables.fact("command_line")),
                                   tables.pid,
                                   format_counted(summary.events, "event", "events"),
                                   ending_text(tables),
                                   terminal.styled(Style::kBold, verdict(summary)));
    for (const DeviceSummary& device : summary.devices) {
        const RunFigures& run = device.metrics.summary;
        text +=
            fmt::format("  device {}   peak reserved {} at {}; peaks: allocated {}, requested {}\n",
                        device.device,
                        format_bytes(run.peak_reserved),
                        format_duration(device.peak_time_ns),
                        format_bytes(run.peak_allocated),
                        format_bytes(run.peak_requested));
    }
    if (tables.damage.events_lost != 0) {
        text += fmt::format("  {} LOST\n",
                            format_counted(tables.damage.events_lost, "event", "events"));
    }
    const std::uint64_t read = std::min(summary.events, kMostEvents);
    const std::string part =
        read == summary.events
            ? ""
            : fmt::format(" It reads {} of the events: those around failures, peaks and the end.",
                          format_count(read));
    return text + fmt::format(
                      "This trace is long. The whole report, with culprit and remedies, needs "
                      "about {} of memory.{}\n  fraganalyze {}\n"
                      "The memory by line at the peak, with little memory:\n"
                      "  fraganalyze summarize {}\n",
                      format_bytes(read * kReportBytesPerEvent),
                      part,
                      shell_quoted(path),
                      shell_quoted(path));
}

}  // namespace fragtrace::analyzer
