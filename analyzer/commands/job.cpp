#include "analyzer/commands/job.h"

#include "analyzer/cli/output_file.h"
#include "analyzer/commands/job_page.h"
#include "analyzer/job/job.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/report/text_source.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

std::string table(const std::vector<JobProcess>& processes, const Terminal& terminal) {
    std::string text = fmt::format("{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
                                   "rank",
                                   "pid",
                                   "allocated",
                                   "reserved",
                                   "retries",
                                   "OOMs",
                                   "ended",
                                   "program");
    for (const JobProcess& process : processes) {
        const std::string line =
            fmt::format("{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
                        process.rank < 0 ? std::string("-") : std::to_string(process.rank),
                        process.pid == 0 ? std::string("-") : std::to_string(process.pid),
                        format_bytes(process.sum(&JobDevice::peak_allocated)),
                        format_bytes(process.sum(&JobDevice::peak_reserved)),
                        format_count(process.sum(&JobDevice::retries)),
                        format_count(process.sum(&JobDevice::ooms)),
                        process.pid == 0 ? "snapshot" : ending_text(process.ending),
                        printable(shorten(command_text(process.program), 60)));
        text += process.sum(&JobDevice::ooms) != 0 ? terminal.styled(Style::kRed, line) : line;
    }
    return text;
}

std::string job_json(const std::string& folder, const Job& job) {
    using Json = nlohmann::ordered_json;
    Json processes = Json::array();
    for (const JobProcess& process : job.processes) {
        processes.push_back({{"file", process.file},
                             {"process", process.pid},
                             {"rank", process.rank >= 0 ? Json(process.rank) : Json()},
                             {"command_line", process.program},
                             {"peak_allocated_bytes", process.sum(&JobDevice::peak_allocated)},
                             {"peak_reserved_bytes", process.sum(&JobDevice::peak_reserved)},
                             {"retries", process.sum(&JobDevice::retries)},
                             {"ooms", process.sum(&JobDevice::ooms)},
                             {"ended", ending_name(process.ending)}});
    }
    Json unreadable = Json::array();
    for (const UnreadableTrace& trace : job.unreadable) {
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    }
    const Json document = {{"schema", 1},
                           {"folder", folder.empty() ? Json() : Json(folder)},
                           {"processes", processes},
                           {"unreadable", unreadable}};
    // Names of the traced programs need not be UTF-8.
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
        written = write_output(
            "-",
            table(job.processes, terminal) +
                "Peaks are each process's own. Next: fraganalyze TRACE, for one of them.\n");
        if (written && !request.html.empty()) {
            fmt::print("  page written to {}\n", request.html);
        }
    }
    if (written && !job.unreadable.empty()) {
        return unreadable_in_job(
            job.unreadable.size(), paths.size(), job.unreadable.front().reason);
    }
    return written;
}

}  // namespace fragtrace::analyzer
