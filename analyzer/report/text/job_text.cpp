#include "analyzer/report/text/job_text.h"

#include "analyzer/analysis/job/first_failure.h"
#include "analyzer/report/text/job_cards_text.h"
#include "analyzer/report/text/job_failure_text.h"
#include "analyzer/report/text/job_groups_text.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/job_remedies_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostRows = 64;

// The rows of the table: all, or the first failures and the highest and lowest peaks.
std::vector<std::size_t> shown_rows(const Job& job) {
    std::vector<std::size_t> rows;
    if (job.processes.size() <= kMostRows) {
        for (std::size_t i = 0; i < job.processes.size(); ++i) {
            rows.push_back(i);
        }
        return rows;
    }
    rows = by_interest(job);
    rows.resize(std::min(rows.size(), kMostRows / 2));
    std::sort(rows.begin(), rows.end());
    return rows;
}

// "1.3" for rank 3 of generation 1.
std::string rank_text(const ProcessSummary& process, bool generations) {
    const std::string rank = process.place.rank < 0 ? "-" : std::to_string(process.place.rank);
    return generations ? fmt::format("{}.{}", generation_of(process), rank) : rank;
}

// What the table says about a process before its program.
std::string note_of(const ProcessSummary& process, bool hosts) {
    const std::string helper = helper_text(process);
    return (hosts ? printable(process.place.host) + ": " : "") +
           (helper.empty() ? "" : fmt::format("({}) ", helper));
}

// The rows as lines; headings of failures in red.
std::string lines_of(const JobRows& rows, const Terminal& terminal) {
    std::string text;
    for (const JobRow& row : rows) {
        const bool failure = row.kind == JobRowKind::kFailure;
        text += failure || row.kind == JobRowKind::kHeading
                    ? terminal.styled(failure ? Style::kRed : Style::kPlain, row.text) + "\n"
                    : fmt::format("  {:<10} {}\n", row.label, row.text);
    }
    return text;
}

std::string table(const Job& job, const Terminal& terminal) {
    const bool generations = has_generations(job);
    const bool hosts =
        std::any_of(job.processes.begin(), job.processes.end(), [&](const ProcessSummary& other) {
            return other.place.host != job.processes.front().place.host;
        });
    const std::size_t width = generations ? std::string_view("gen.rank").size() : 5;
    std::string text = fmt::format("{:>{}} {:>8} {:>10} {:>10} {:>7} {:>7}  {:<20} {}\n",
                                   generations ? "gen.rank" : "rank",
                                   width,
                                   "pid",
                                   "allocated",
                                   "reserved",
                                   "retries",
                                   "OOMs",
                                   "ended",
                                   "program");
    const std::vector<std::size_t> rows = shown_rows(job);
    for (const std::size_t i : rows) {
        const ProcessSummary& process = job.processes[i];
        const std::uint64_t reserved = process.sum(&RunFigures::peak_reserved);
        const std::string line = fmt::format(
            "{:>{}} {:>8} {:>10} {:>10} {:>7} {:>7}  {:<20} {}\n",
            rank_text(process, generations),
            width,
            process.pid == 0 ? std::string("-") : std::to_string(process.pid),
            format_bytes(process.sum(&RunFigures::peak_allocated)),
            reserved == kUnknown64 ? "unknown" : format_bytes(reserved),
            process.all_segments_known() ? format_count(process.sum(&RunFigures::retries))
                                         : "unknown",
            count_or_unknown(process.sum(&RunFigures::ooms)),
            end_of(process),
            note_of(process, hosts) + printable(shorten(command_text(process.program), 60)));
        text += process.first_oom() ? terminal.styled(Style::kRed, line) : line;
    }
    if (rows.size() < job.processes.size()) {
        text += fmt::format(
            "  and {}: --json has all\n",
            format_counted(job.processes.size() - rows.size(), "more process", "more processes"));
    }
    return text;
}

}  // namespace

// Recordings that do not begin with their program or have gaps.
std::string partial_text(const Job& job) {
    std::vector<std::size_t> partial;
    bool parts = false;
    bool gaps = false;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        if (process.parts_missing != 0 || process.recording_gaps) {
            partial.push_back(i);
            parts = parts || process.parts_missing != 0;
            gaps = gaps || process.recording_gaps;
        }
    }
    return partial.empty() ? ""
                           : fmt::format(
                                 "the recording{} of {} {} not complete ({}): {} peaks and "
                                 "counts are lower bounds, and earlier out-of-memories are "
                                 "not known",
                                 partial.size() == 1 ? "" : "s",
                                 names_of(job, partial),
                                 partial.size() == 1 ? "is" : "are",
                                 parts && gaps ? "parts were removed, or recording was off "
                                                 "for a time"
                                 : parts       ? "earlier parts were removed"
                                               : "recording was off for a time",
                                 partial.size() == 1 ? "its" : "their");
}

// Pools of the program's own are not part of the figures of a job.
std::string pools_text(const Job& job) {
    std::vector<std::size_t> failed;
    std::uint64_t requests = 0;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].pool_failures != 0) {
            failed.push_back(i);
            requests += job.processes[i].pool_failures;
        }
    }
    return failed.empty() ? ""
                          : fmt::format(
                                "pools of the program's own could not serve {} in {}: fraganalyze "
                                "TRACE says why",
                                format_counted(requests, "request", "requests"),
                                names_of(job, failed));
}

// Traces that cannot be read completely.
std::string damaged_text(const Job& job) {
    std::vector<std::size_t> damaged;
    std::vector<std::size_t> end_unknown;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (job.processes[i].damaged) {
            damaged.push_back(i);
            if (job.processes[i].end.unknown()) {
                end_unknown.push_back(i);
            }
        }
    }
    if (damaged.empty()) {
        return "";
    }
    const bool one = damaged.size() == 1;
    return fmt::format(
        "the trace{} of {} {} cut off or damaged: {} peaks, counts and held memory are lower "
        "bounds, and out-of-memories in the missing part are not known{}",
        one ? "" : "s",
        names_of(job, damaged),
        one ? "is" : "are",
        one ? "its" : "their",
        end_unknown.empty()
            ? ""
            : fmt::format("; how {} ended is not known", names_of(job, end_unknown)));
}

// Several job ids, although no rank exists twice.
std::string ids_text(const Job& job) {
    constexpr std::size_t kMostIds = 4;
    std::vector<std::string> ids = job_ids(job);
    std::erase(ids, "");
    if (ids.size() < 2) {
        return "";
    }
    std::string names;
    for (std::size_t i = 0; i < std::min(ids.size(), kMostIds); ++i) {
        names += (i == 0 ? "" : ", ") + printable(ids[i]);
    }
    return fmt::format(
        "{} job ids ({}{}), taken as one job because no rank exists twice; --job-id "
        "ID shows one",
        format_count(ids.size()),
        names,
        ids.size() > kMostIds ? ", ..." : "");
}

// Ranks that began again while their earlier process ran.
std::string again_text(const Job& job) {
    const std::vector<std::size_t> again = ranks_again(job);
    return again.empty() ? ""
                         : fmt::format(
                               "{} began while an earlier process of the same rank ran: "
                               "several runs may overlap here, and they are taken as one",
                               names_of(job, again));
}

JobRows job_rows(const Job& job, const JobView& view, JobReader reader) {
    JobRows rows = generation_rows(job, view);
    append(view_row("pools", pools_text(job)), &rows);
    append(view_row("runs", again_text(job)), &rows);
    append(view_row("jobs", ids_text(job)), &rows);
    append(view_row("missing", missing_text(job, view)), &rows);
    append(view_row("partial", partial_text(job)), &rows);
    append(view_row("damaged", damaged_text(job)), &rows);
    append(group_rows(job, view, reader), &rows);
    append(remedy_rows(job, view), &rows);
    append(card_rows(job, view, reader), &rows);
    return rows;
}

std::string job_text(const Job& job, const JobView& view, const Terminal& terminal) {
    return lines_of(job_rows(job, view), terminal) +
           (job.processes.empty() ? "" : table(job, terminal)) + unreadable_text(job, terminal);
}

std::string unreadable_text(const Job& job, const Terminal& terminal) {
    std::string text;
    // The reason contains the name of the trace.
    for (const UnreadableTrace& trace : job.unreadable) {
        text += terminal.styled(Style::kRed, "unreadable  " + printable(trace.reason)) + "\n";
    }
    return text;
}

std::string job_heading(const OneJob& one) {
    return fmt::format("{}{} ({})",
                       one.id.empty() ? "no job id"
                       : one.is_run   ? ""
                                      : "job ",
                       printable(one.id),
                       format_counted(one.members.size(), "trace", "traces"));
}

std::string jobs_table(const std::vector<OneJob>& jobs, const std::string& folder) {
    constexpr std::size_t kMostJobs = 64;
    // The first one that failed; without a failure, the first one.
    const auto failed = std::find_if(jobs.begin(), jobs.end(), [](const OneJob& one) {
        return first_failure(one.job).has_value();
    });
    const std::string& id = failed == jobs.end() ? jobs.front().id : failed->id;
    std::string text = fmt::format(
        "The traces are of {} jobs or runs, whose ranks have the same numbers. One of them:\n"
        "  fraganalyze {} --job-id {}\n",
        format_count(jobs.size()),
        folder.empty() ? "TRACES" : shell_quoted(folder),
        id.empty() ? "-" : shell_quoted(id));
    for (std::size_t i = 0; i < std::min(jobs.size(), kMostJobs); ++i) {
        const auto first = first_failure(jobs[i].job);
        text += fmt::format(
            "  {}: {}\n",
            job_heading(jobs[i]),
            first ? first_failure_text(jobs[i].job, *first) : no_failure_text(jobs[i].job));
    }
    if (jobs.size() > kMostJobs) {
        text += fmt::format("  and {} more jobs: --json has them\n",
                            format_count(jobs.size() - kMostJobs));
    }
    return text;
}

}  // namespace fragtrace::analyzer
