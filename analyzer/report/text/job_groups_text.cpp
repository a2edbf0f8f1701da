#include "analyzer/report/text/job_groups_text.h"

#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostInTerminal = 6;
constexpr std::size_t kMostOnPage = 100;

// Peaks of recordings that are not whole are lower bounds.
std::string peaks_text(const Job& job, const ProcessGroup& group) {
    const bool partial = std::any_of(group.members.begin(), group.members.end(), [&](auto i) {
        return job.processes[i].is_partial();
    });
    return (partial ? "at least " : "") + (group.least_reserved == group.most_reserved
                                               ? format_bytes(group.most_reserved)
                                               : fmt::format("{} to {}",
                                                             format_bytes(group.least_reserved),
                                                             format_bytes(group.most_reserved)));
}

const char* rank_reason(const ProcessSummary& process) {
    const bool earlier = process.end.ending == Ending::kExec && process.place.inherited_rank >= 0;
    return earlier                  ? "an earlier program of a rank"
           : process.place.rank < 0 ? "without a rank"
                                    : "with a rank";
}

std::string allocated_reason(const ProcessSummary& process, const ProcessSummary& other) {
    return fmt::format("allocated {}{} instead of {}{}",
                       process.is_partial() ? "at least " : "",
                       format_bytes(process.sum(&RunFigures::peak_allocated)),
                       format_bytes(other.sum(&RunFigures::peak_allocated)),
                       process.devices.size() > 1 ? ", unequal on at least one device" : "");
}

// Why processes are not in the group with which they are compared, beside the peak and the lines.
std::string reasons_text(const Job& job, const JobView& view, const GroupDifference& difference) {
    const ProcessSummary& a = job.processes[view.groups[difference.group].front()];
    const ProcessSummary& b = job.processes[view.groups[difference.from].front()];
    const bool by_peak =
        std::find(difference.reasons.begin(), difference.reasons.end(), GroupReason::kPeak) !=
        difference.reasons.end();
    std::vector<std::string> parts;
    for (const GroupReason reason : difference.reasons) {
        switch (reason) {
            case GroupReason::kDevices:
                parts.push_back(fmt::format("memory on {}{} instead of {}",
                                            a.is_partial() ? "at least " : "",
                                            format_counted(a.devices.size(), "device", "devices"),
                                            format_count(b.devices.size())));
                break;
            case GroupReason::kRank:
                parts.emplace_back(rank_reason(a));
                break;
            case GroupReason::kOutOfMemory:
                parts.emplace_back(a.first_oom()    ? "ran out of memory"
                                   : a.is_partial() ? "no out-of-memory recorded"
                                                    : "did not run out of memory");
                break;
            case GroupReason::kPeak:
                if (a.devices.size() > 1) {
                    parts.emplace_back("another peak on at least one device");
                }
                break;
            case GroupReason::kAllocated:
                if (!by_peak) {
                    parts.push_back(allocated_reason(a, b));
                }
                break;
            case GroupReason::kLines:
                break;
        }
    }
    std::string text;
    for (const std::string& part : parts) {
        text += (text.empty() ? "; " : ", ") + part;
    }
    return text;
}

std::string difference_text(const Job& job,
                            const JobView& view,
                            const GroupDifference& difference) {
    const ProcessGroup& group = view.groups[difference.group];
    const std::string others = names_of(job, view.groups[difference.from].members);
    const std::string peak =
        fmt::format("{}: peak {}", names_of(job, group.members), peaks_text(job, group));
    const auto size = static_cast<std::uint64_t>(difference.reserved < 0 ? -difference.reserved
                                                                         : difference.reserved);
    const bool partial = job.processes[group.front()].is_partial() ||
                         job.processes[view.groups[difference.from].front()].is_partial();
    const std::string than =
        size != 0 ? fmt::format(", {}{} {} than {}",
                                partial ? "in the recorded part " : "",
                                format_bytes(size),
                                difference.reserved < 0 ? "less" : "more",
                                others)
                  : fmt::format(" as {}{}",
                                others,
                                difference.lines.empty() ? "" : ", but not in the same lines");
    return peak + than + reasons_text(job, view, difference);
}

}  // namespace

JobRows group_rows(const Job& job, const JobView& view, JobReader reader) {
    if (view.groups.empty() || (view.groups.size() == 1 && view.groups[0].members.size() == 1)) {
        return {};
    }
    const bool on_page = reader == JobReader::kPage;
    const std::size_t most = on_page ? kMostOnPage : kMostInTerminal;
    const char* const where = on_page ? "see the table of all processes" : "--json has them";
    JobRows rows;
    for (std::size_t i = 0; i < std::min(view.groups.size(), most); ++i) {
        const ProcessGroup& group = view.groups[i];
        if (group.members.size() > 1) {
            append(view_row("equal",
                            fmt::format("{} ({}): peak {}",
                                        names_of(job, group.members),
                                        format_count(group.members.size()),
                                        peaks_text(job, group))),
                   &rows);
        }
    }
    for (std::size_t i = 0; i < std::min(view.differences.size(), most); ++i) {
        const GroupDifference& difference = view.differences[i];
        std::string line = difference_text(job, view, difference);
        for (std::size_t at = 0; at < difference.lines.size(); ++at) {
            const LineDifference& of_line = difference.lines[at];
            line += fmt::format("{}{}{} {}",
                                at == 0 ? ": " : "; ",
                                of_line.at_least ? "at least " : "",
                                format_bytes_difference(of_line.bytes),
                                printable(of_line.line));
        }
        if (difference.unused != 0) {
            line += fmt::format("{}{} cached, in holes or lost to rounding",
                                difference.lines.empty() ? ": " : "; ",
                                format_bytes_difference(difference.unused));
        }
        append(view_row("differs", line), &rows);
    }
    if (view.differences.size() > most) {
        append(
            view_row("",
                     fmt::format("{} with other peaks or lines: {}",
                                 format_counted(
                                     view.differences.size() - most, "more group", "more groups"),
                                 where)),
            &rows);
    }
    if (!view.not_compared.empty()) {
        append(view_row("",
                        fmt::format("{} like none of these groups, not compared: {}",
                                    format_counted(
                                        view.not_compared.size(), "more process", "more processes"),
                                    where)),
               &rows);
    }
    return rows;
}

}  // namespace fragtrace::analyzer
