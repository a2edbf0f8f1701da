#include "analyzer/commands/job.h"

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/job/job.h"
#include "analyzer/commands/job_page.h"
#include "analyzer/commands/long_trace.h"
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

// Text like "rank 3 of 4 ran out of memory first" or "rank 1 of 2 failed first: SIGSEGV".
std::string failure_text(const Job& job, const FirstFailure& failure) {
    const JobProcess& process = job.processes[failure.process];
    const int rank = process.place.rank;
    const std::string who = rank >= 0          ? fmt::format("rank {}", rank)
                            : process.pid != 0 ? fmt::format("pid {}", process.pid)
                                               : printable(process.file);
    const std::string what = failure.out_of_memory
                                 ? "ran out of memory first"
                                 : fmt::format("failed first: {}", ending_text(process.end));
    return fmt::format("{}{} of {}{} {}",
                       has_generations(job)
                           ? fmt::format("generation {}: ", std::max(process.place.generation, 0))
                           : "",
                       who,
                       failure.of,
                       rank >= 0         ? ""
                       : failure.of == 1 ? " process"
                                         : " processes",
                       what);
}

// The first failure, then those of other generations. Empty if nothing failed.
std::string failure_lines(const Job& job, Style style, const Terminal& terminal) {
    const auto first = first_failure(job);
    if (!first) {
        return {};
    }
    std::string text = terminal.styled(style, failure_text(job, *first)) + "\n";
    for (const FirstFailure& failure : first_failures(job)) {
        if (failure.process != first->process) {
            text += failure_text(job, failure) + "\n";
        }
    }
    return text;
}

// The file that explains why a process failed.
const std::string& path_of_failure(const JobProcess& process) {
    return process.failure_path.empty() ? process.path : process.failure_path;
}

// Writes the summary of the process that failed first. If none failed, of the first recording.
Status write_first_summary(const AnalyzeOptions& options,
                           const Job& job,
                           const std::string& first_path,
                           const Terminal& terminal) {
    const auto failure = first_failure(job);
    const std::string path =
        failure ? path_of_failure(job.processes[failure->process]) : first_path;
    const std::string first = failure_lines(job, Style::kBold, terminal);
    if (is_long_trace(path)) {
        const auto text = summarize_long_trace(path, terminal);
        return text ? write_text(first + *text) : Status(text.error());
    }
    const auto analyzed = analyze(path, options);
    if (!analyzed) {
        return analyzed.error();
    }
    return write_text(first + summary_text(**analyzed, terminal));
}

nlohmann::ordered_json number_or_null(int number) {
    return number >= 0 ? nlohmann::ordered_json(number) : nullptr;
}

nlohmann::ordered_json text_or_null(const std::string& text) {
    return text.empty() ? nullptr : nlohmann::ordered_json(text);
}

nlohmann::ordered_json failure_json(const Job& job, const FirstFailure& failure) {
    const JobProcess& process = job.processes[failure.process];
    return {{"file", std::filesystem::path(path_of_failure(process)).filename().string()},
            {"process", process.pid},
            {"rank", number_or_null(process.place.rank)},
            {"host", text_or_null(process.place.host)},
            {"generation", number_or_null(process.place.generation)},
            {"of", failure.of},
            {"out_of_memory", failure.out_of_memory}};
}

bool has_hosts(const Job& job) {
    return std::any_of(job.processes.begin(), job.processes.end(), [&job](const auto& process) {
        return process.place.host != job.processes.front().place.host;
    });
}

// "1.3 " for rank 3 of generation 1.
std::string rank_text(const JobPlace& place, bool generations) {
    const std::string rank = place.rank < 0 ? "-" : std::to_string(place.rank);
    return generations ? fmt::format("{}.{}", std::max(place.generation, 0), rank) : rank;
}

// What the table says about a process before its program.
std::string note_of(const JobProcess& process, bool hosts) {
    std::string note;
    if (hosts) {
        note += printable(process.place.host) + ": ";
    }
    if (process.place.inherited_rank >= 0) {
        note += fmt::format("(helper of rank {}) ", process.place.inherited_rank);
    }
    return note;
}

std::string table(const Job& job, const Terminal& terminal) {
    const std::vector<JobProcess>& processes = job.processes;
    const bool generations = has_generations(job);
    const bool hosts = has_hosts(job);
    std::string text = fmt::format("{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
                                   generations ? "gen.rank" : "rank",
                                   "pid",
                                   "allocated",
                                   "reserved",
                                   "retries",
                                   "OOMs",
                                   "ended",
                                   "program");
    for (const JobProcess& process : processes) {
        const bool known = process.all_segments_known();
        const std::string line = fmt::format(
            "{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
            fmt::format("{:>{}}",
                        rank_text(process.place, generations),
                        generations ? std::string_view("gen.rank").size() : 5),
            process.pid == 0 ? std::string("-") : std::to_string(process.pid),
            format_bytes(process.sum(&RunFigures::peak_allocated)),
            known ? format_bytes(process.sum(&RunFigures::peak_reserved)) : "unknown",
            known ? format_count(process.sum(&RunFigures::retries)) : "unknown",
            format_count(process.sum(&RunFigures::ooms)),
            !process.import.empty() ? printable(process.import)
            : process.pid == 0      ? "snapshot"
                                    : ending_text(process.end),
            note_of(process, hosts) + printable(shorten(command_text(process.program), 60)));
        text += process.sum(&RunFigures::ooms) != 0 ? terminal.styled(Style::kRed, line) : line;
    }
    return text;
}

// One line per unreadable trace. The reason contains its name.
std::string unreadable_lines(const Job& job, const Terminal& terminal) {
    std::string text;
    for (const UnreadableTrace& trace : job.unreadable) {
        text += terminal.styled(Style::kRed, "unreadable  " + printable(trace.reason)) + "\n";
    }
    return text;
}

std::string job_json(const std::string& folder, const Job& job) {
    using Json = nlohmann::ordered_json;
    Json processes = Json::array();
    for (const JobProcess& process : job.processes) {
        processes.push_back(
            {{"file", process.file},
             {"process", process.pid},
             {"rank", number_or_null(process.place.rank)},
             {"rank_source",
              process.place.rank >= 0 ? text_or_null(process.place.rank_source) : Json()},
             {"helper_of_rank", number_or_null(process.place.inherited_rank)},
             {"local_rank", number_or_null(process.place.local_rank)},
             {"world_size", number_or_null(process.place.world_size)},
             {"host", text_or_null(process.place.host)},
             {"generation", number_or_null(process.place.generation)},
             {"job_id", text_or_null(process.place.job_id)},
             {"other_files", process.other_files},
             {"command_line", process.program},
             {"peak_allocated_bytes", process.sum(&RunFigures::peak_allocated)},
             {"peak_reserved_bytes",
              process.all_segments_known() ? Json(process.sum(&RunFigures::peak_reserved))
                                           : Json()},
             {"retries",
              process.all_segments_known() ? Json(process.sum(&RunFigures::retries)) : Json()},
             {"ooms", process.sum(&RunFigures::ooms)},
             {"ended", ending_name(process.end.ending)},
             {"ending", ending_json(process.end)}});
    }
    const auto first = first_failure(job);
    Json failures = Json::array();
    for (const FirstFailure& failure : first_failures(job)) {
        failures.push_back(failure_json(job, failure));
    }
    Json unreadable = Json::array();
    for (const UnreadableTrace& trace : job.unreadable) {
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    }
    const Json document = {{"schema", 1},
                           {"folder", folder.empty() ? Json() : Json(folder)},
                           {"first_failure", first ? failure_json(job, *first) : Json()},
                           {"first_failures", failures},
                           {"processes", processes},
                           {"unreadable", unreadable}};
    // Names from the traced programs may be invalid UTF-8.
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::vector<std::string>> recordings_of_job(const std::string& folder) {
    std::error_code failed;
    std::vector<std::string> paths = recordings_in(folder, &failed);
    if (failed || paths.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: {}; give a trace, a snapshot, or a folder of "
                                 "them (*.ftrace, *.pickle, *.pkl)",
                                 folder,
                                 failed ? failed.message() : "no traces or snapshots in it")};
    }
    return paths;
}

Error unreadable_in_job(std::size_t unreadable, std::size_t all, const std::string& first_reason) {
    return {ErrorCode::kInput,
            fmt::format(
                "{} of {} traces cannot be read; the first: {}", unreadable, all, first_reason)};
}

Status report_job(const JobRequest& request, const Terminal& terminal) {
    std::vector<std::string> paths = request.traces;
    if (!request.folder.empty()) {
        Result<std::vector<std::string>> found = recordings_of_job(request.folder);
        if (!found) {
            return found.error();
        }
        paths = std::move(found).value();
    }
    Job job;
    {
        Progress progress("reading");
        job = read_job(paths, [&](std::size_t done, std::size_t all) { progress.show(done, all); });
    }
    if (request.summary) {
        return write_first_summary(request.options, job, paths.front(), terminal);
    }
    if (!request.html.empty()) {
        const Status written = write_job_page(request, &job);
        if (!written) {
            return written;
        }
    }
    Status written = Ok{};
    if (!request.json.empty()) {
        written = write_output(request.json, job_json(request.folder, job));
    }
    if (written && request.json != "-" && request.html != "-") {
        written = write_text(failure_lines(job, Style::kRed, terminal) + table(job, terminal) +
                             unreadable_lines(job, terminal) +
                             "Peaks are per process. Next: fraganalyze TRACE for one process.\n");
        if (written && !request.html.empty()) {
            fmt::print("  page written to {}\n", printable(request.html));
        }
    }
    if (written && !job.unreadable.empty()) {
        return unreadable_in_job(
            job.unreadable.size(), paths.size(), job.unreadable.front().reason);
    }
    return written;
}

}  // namespace fragtrace::analyzer
