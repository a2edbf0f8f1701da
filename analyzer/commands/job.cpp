#include "analyzer/commands/job.h"

#include "analyzer/cli/output_file.h"
#include "analyzer/metrics/device_metrics.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/report/text_source.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {
namespace {

struct Process {
    int rank = -1;
    std::uint32_t pid = 0;
    std::string file;
    std::string program;               // its command line
    std::uint64_t peak_allocated = 0;  // the sum of the devices' own peaks
    std::uint64_t peak_reserved = 0;
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    Ending ending = Ending::kKilled;
};

Process summarize(const Timeline& timeline, const std::filesystem::path& path) {
    Process process;
    process.rank = timeline.rank;
    process.pid = timeline.pid;
    process.file = path.filename().string();
    process.program = timeline.fact("command_line", timeline.path);
    process.ending = timeline.ending;
    for (const DeviceId device : replayable_devices(timeline)) {
        const MemorySummary summary = measure_device(timeline, device).summary;
        process.peak_allocated += summary.peak_allocated;
        process.peak_reserved += summary.peak_reserved;
        process.retries += summary.retries;
        process.ooms += summary.ooms;
    }
    process.ooms += static_cast<std::uint64_t>(
        std::count_if(timeline.events.begin(), timeline.events.end(), [](const Event& event) {
            return event.kind == EventKind::kCallOutOfMemory;
        }));
    return process;
}

std::string table(const std::vector<Process>& processes, const Terminal& terminal) {
    std::string text = fmt::format("{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
                                   "rank",
                                   "pid",
                                   "allocated",
                                   "reserved",
                                   "retries",
                                   "OOMs",
                                   "ended",
                                   "program");
    for (const Process& process : processes) {
        const std::string line =
            fmt::format("{:>5} {:>8} {:>10} {:>10} {:>7} {:>5}  {:<20} {}\n",
                        process.rank < 0 ? std::string("-") : std::to_string(process.rank),
                        process.pid == 0 ? std::string("-") : std::to_string(process.pid),
                        format_bytes(process.peak_allocated),
                        format_bytes(process.peak_reserved),
                        format_count(process.retries),
                        format_count(process.ooms),
                        process.pid == 0 ? "snapshot" : ending_text(process.ending),
                        printable(shorten(command_text(process.program), 60)));
        text += process.ooms != 0 ? terminal.styled(Style::kRed, line) : line;
    }
    return text;
}

struct Unreadable {
    std::string file;
    std::string reason;
};

struct Job {
    std::vector<Process> processes;  // by rank, those without one last
    std::vector<Unreadable> unreadable;
};

Job read_job(const std::vector<std::string>& paths) {
    Job job;
    for (const std::string& name : paths) {
        const std::filesystem::path path(name);
        const auto timeline = read_input(name);
        if (timeline) {
            job.processes.push_back(summarize(*timeline, path));
        } else {
            job.unreadable.push_back({path.filename().string(), timeline.error().message});
        }
    }
    std::stable_sort(
        job.processes.begin(), job.processes.end(), [](const Process& a, const Process& b) {
            return std::tuple(a.rank < 0, a.rank, a.pid) < std::tuple(b.rank < 0, b.rank, b.pid);
        });
    return job;
}

std::string job_json(const std::string& folder, const Job& job) {
    using Json = nlohmann::ordered_json;
    Json processes = Json::array();
    for (const Process& process : job.processes) {
        processes.push_back({{"file", process.file},
                             {"process", process.pid},
                             {"rank", process.rank >= 0 ? Json(process.rank) : Json()},
                             {"command_line", process.program},
                             {"peak_allocated_bytes", process.peak_allocated},
                             {"peak_reserved_bytes", process.peak_reserved},
                             {"retries", process.retries},
                             {"ooms", process.ooms},
                             {"ended", ending_name(process.ending)}});
    }
    Json unreadable = Json::array();
    for (const Unreadable& trace : job.unreadable) {
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    }
    const Json document = {
        {"schema", 1}, {"folder", folder}, {"processes", processes}, {"unreadable", unreadable}};
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

Status report_job(const std::string& folder, const std::string& json, const Terminal& terminal) {
    const Result<std::vector<std::string>> paths = recordings_of_job(folder);
    if (!paths) {
        return paths.error();
    }
    const Job job = read_job(*paths);
    Status written = Ok{};
    if (!json.empty()) {
        written = write_output(json, job_json(folder, job));
    }
    if (written && json != "-") {
        written = write_output(
            "-",
            table(job.processes, terminal) +
                "Peaks are each process's own. Next: fraganalyze TRACE, for one of them.\n");
    }
    if (written && !job.unreadable.empty()) {
        return unreadable_in_job(
            job.unreadable.size(), paths->size(), job.unreadable.front().reason);
    }
    return written;
}

}  // namespace fragtrace::analyzer
