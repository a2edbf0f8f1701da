#include "analyzer/report/page/page_ranks.h"

#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kProgramWidth = 120;

// Start time of the first process; 0 if no trace contains one.
std::uint64_t start_of(const Job& job) {
    std::uint64_t start_ns = 0;
    for (const JobProcess& process : job.processes) {
        if (process.start_unix_ns != 0) {
            start_ns =
                start_ns == 0 ? process.start_unix_ns : std::min(start_ns, process.start_unix_ns);
        }
    }
    return start_ns;
}

PageRank row_of(const JobProcess& process, std::uint64_t job_start_ns) {
    PageRank row;
    row.rank = process.place.rank;
    row.pid = process.pid;
    if (process.start_unix_ns != 0) {
        row.start_after_ns = process.start_unix_ns - job_start_ns;
    }
    row.ended = process.pid == 0 ? "snapshot" : ending_text(process.end);
    row.program = printable(shorten(command_text(process.program), kProgramWidth));
    row.file = process.file;
    const std::string page = std::filesystem::path(process.file).stem().string() + ".html";
    row.command =
        fmt::format("fraganalyze {} --html {}", shell_quoted(process.path), shell_quoted(page));
    return row;
}

}  // namespace

void add_ranks(const Job& job, const PagePlaces& places, PageData* data) {
    const std::uint64_t job_start_ns = start_of(job);
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const JobProcess& process = job.processes[i];
        const PageRank common = row_of(process, job_start_ns);
        for (const JobDevice& device : process.devices) {
            PageRank row = common;
            row.gpu = device.device;
            row.capacity_bytes = device.capacity_bytes == 0 ? kPageUnknown : device.capacity_bytes;
            row.run = device.run;
            row.first_oom_ns = device.first_oom_ns.value_or(kNeverNs);
            const auto place = places.find({i, device.device});
            row.device = place == places.end() ? kPageNoDevice : place->second;
            data->ranks.push_back(std::move(row));
        }
        if (process.devices.empty()) {
            data->ranks.push_back(common);
        }
    }
    for (const UnreadableTrace& trace : job.unreadable) {
        data->unreadable.push_back({trace.file, trace.reason});
    }
}

}  // namespace fragtrace::analyzer
