#include "analyzer/report/page/page_ranks.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/job_names.h"
#include "analyzer/report/text/job_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/terminal.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kProgramWidth = 120;

// Start time of the first process; 0 if no trace contains one.
std::uint64_t start_of(const Job& job) {
    std::uint64_t start_ns = 0;
    for (const ProcessSummary& process : job.processes) {
        if (process.start_unix_ns != 0) {
            start_ns =
                start_ns == 0 ? process.start_unix_ns : std::min(start_ns, process.start_unix_ns);
        }
    }
    return start_ns;
}

PageRank row_of(const ProcessSummary& process, std::uint64_t job_start_ns) {
    PageRank row;
    row.rank = process.place.rank;
    row.pid = process.pid;
    if (process.start_unix_ns != 0) {
        row.start_after_ns = process.start_unix_ns - job_start_ns;
    }
    row.host = printable(process.place.host);
    row.helper = helper_text(process);
    row.trace = !process.path.empty();
    row.ended = end_of(process);
    row.program = printable(shorten(command_text(process.program), kProgramWidth));
    row.file = process.file;
    const std::string page = std::filesystem::path(process.file).stem().string() + ".html";
    // Of a process whose trace is elsewhere only the name of the trace is known.
    row.command = fmt::format("fraganalyze {} --html {}",
                              shell_quoted(process.path.empty() ? process.file : process.path),
                              shell_quoted(page));
    return row;
}

// When the last process ended, or is last known to have run, on the job's clock.
std::uint64_t end_of(const Job& job, std::uint64_t job_start_ns) {
    std::uint64_t end_ns = 0;
    for (const ProcessSummary& process : job.processes) {
        if (process.start_unix_ns != 0) {
            end_ns =
                std::max(end_ns, process.ended_by().value_or(process.ended_at()) - job_start_ns);
        }
    }
    return end_ns;
}

PageHeat heat_of(const Job& job, std::size_t rows, std::uint64_t job_start_ns) {
    constexpr std::size_t kColumns = 256;
    constexpr std::size_t kMostValues = 2'000'000;  // in the file; two bytes of base64 or more each
    PageHeat heat;
    for (const ProcessSummary& process : job.processes) {
        for (const ProcessDevice& device : process.devices) {
            if (process.start_unix_ns != 0 && device.curve.bin_ns != 0) {
                heat.columns = kColumns;
            }
            // The scale ends at the largest peak: on a large card, differences stay visible.
            const std::uint64_t peak =
                segments_known(device.run) ? device.run.peak_reserved : device.run.peak_allocated;
            heat.full_bytes = std::max(heat.full_bytes, peak);
        }
    }
    while (heat.columns > 16 && heat.columns * rows > kMostValues) {
        heat.columns /= 2;
    }
    heat.full_bytes = std::max<std::uint64_t>(heat.full_bytes, 1);
    heat.column_ns = heat.columns == 0 ? 0 : end_of(job, job_start_ns) / heat.columns + 1;
    return heat;
}

// Fills columns of a heat row. Times are those of the job's clock; a larger value stays.
class HeatColumns {
  public:
    explicit HeatColumns(const PageHeat& heat) : heat_(heat), row_(heat.columns) {}

    void fill(std::uint64_t begin_ns, std::uint64_t end_ns, std::uint8_t value) {
        const std::uint64_t last =
            std::min<std::uint64_t>(end_ns / heat_.column_ns, heat_.columns - 1);
        for (std::uint64_t at = begin_ns / heat_.column_ns; at <= last; ++at) {
            row_[at] = std::max(row_[at], value);
        }
    }

    [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(row_); }

  private:
    const PageHeat& heat_;
    std::vector<std::uint8_t> row_;
};

// The maxima of a curve in the columns of the job. After its last event, a process holds what it
// held then until it ends.
std::vector<std::uint8_t> heat_row(const ProcessSummary& process,
                                   const CompactCurve& curve,
                                   const std::vector<std::uint16_t>& bins,
                                   const PageHeat& heat,
                                   std::uint64_t job_start_ns) {
    constexpr std::uint64_t kSteps = kPageHeatMost - kPageHeatZero;
    if (heat.columns == 0 || bins.empty() || curve.bin_ns == 0 || process.start_unix_ns == 0) {
        return {};
    }
    const auto value_of = [&](std::uint16_t units) {
        const double share = static_cast<double>(units) * static_cast<double>(curve.unit_bytes) /
                             static_cast<double>(heat.full_bytes);
        return static_cast<std::uint8_t>(
            kPageHeatZero + static_cast<std::uint64_t>(std::ceil(std::min(share, 1.0) * kSteps)));
    };
    HeatColumns columns(heat);
    const std::uint64_t start_ns = process.start_unix_ns - job_start_ns;
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        const std::uint64_t begin_ns = bin * curve.bin_ns;
        if (begin_ns > process.last_event_ns) {
            break;
        }
        const std::uint64_t end_ns = std::min(begin_ns + curve.bin_ns, process.last_event_ns);
        columns.fill(start_ns + begin_ns, start_ns + end_ns, value_of(bins[bin]));
    }
    // A damaged trace may lack the last events.
    std::uint64_t known_ns = start_ns + process.last_event_ns;
    if (!process.damaged) {
        columns.fill(known_ns, process.ended_at() - job_start_ns, value_of(bins.back()));
        known_ns = process.ended_at() - job_start_ns;
    }
    const auto ended_by = process.ended_by();
    const std::uint64_t unknown_until_ns =
        ended_by ? *ended_by - job_start_ns : heat.columns * heat.column_ns - 1;
    if (unknown_until_ns > known_ns) {
        columns.fill(known_ns, unknown_until_ns, kPageHeatUnknown);
    }
    return columns.take();
}

PageJobRowKind kind_of(JobRowKind kind) {
    switch (kind) {
        case JobRowKind::kFailure:
            return PageJobRowKind::kFailure;
        case JobRowKind::kHeading:
            return PageJobRowKind::kHeading;
        case JobRowKind::kOfReport:
            return PageJobRowKind::kReport;
        case JobRowKind::kRow:
            break;
    }
    return PageJobRowKind::kRow;
}

// The rows of the report about the job.
void add_view(const Job& job,
              const JobView& view,
              const std::vector<std::size_t>& row_of_process,
              PageData* data) {
    const ProcessNames names(job);
    for (const JobRow& row : job_rows(job, view, JobReader::kPage)) {
        PageJobRow& made = data->job.emplace_back();
        made.kind = kind_of(row.kind);
        made.label = row.label;
        for (const NamedPart& part : names.parts_of(row)) {
            PageNamed& named = made.parts.emplace_back(PageNamed{part.text});
            for (const std::size_t process : part.processes) {
                named.ranks.push_back(row_of_process[process]);
            }
        }
    }
    for (const UnreadableTrace& trace : job.unreadable) {
        data->job.push_back(
            {PageJobRowKind::kUnreadable, "unreadable", {{printable(trace.reason)}}});
    }
}

}  // namespace

void add_ranks(const Job& job, const JobView& view, const PagePlaces& places, PageData* data) {
    const bool generations = has_generations(job);
    // The row that stands for a process in sentences.
    std::vector<std::size_t> row_of_process;
    const std::uint64_t job_start_ns = start_of(job);
    std::size_t rows = 0;
    for (const ProcessSummary& process : job.processes) {
        rows += process.devices.size();
    }
    data->heat = heat_of(job, rows, job_start_ns);
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        PageRank common = row_of(process, job_start_ns);
        common.generation = generations ? generation_of(process) : -1;
        const auto failure = std::find_if(
            view.generations.begin(), view.generations.end(), [i](const GenerationEnd& one) {
                return one.first && one.first->process == i;
            });
        if (failure != view.generations.end()) {
            common.first_failure = static_cast<int>(failure - view.generations.begin());
        }
        row_of_process.push_back(data->ranks.size());
        for (const ProcessDevice& device : process.devices) {
            PageRank row = common;
            row.gpu = device.device;
            row.capacity_bytes = device.capacity_bytes == 0 ? kPageUnknown : device.capacity_bytes;
            row.run = device.run;
            row.first_oom_ns = device.first_oom_ns.value_or(kNeverNs);
            const auto place = places.find({i, device.device});
            row.device = place == places.end() ? kPageNoDevice : place->second;
            row.reserved_heat =
                heat_row(process, device.curve, device.curve.reserved, data->heat, job_start_ns);
            row.allocated_heat =
                heat_row(process, device.curve, device.curve.allocated, data->heat, job_start_ns);
            // A device that ran out of memory stands for its process.
            const std::size_t first = row_of_process.back();
            if (first < data->ranks.size() && row.run.ooms != 0 &&
                data->ranks[first].run.ooms == 0) {
                row_of_process.back() = data->ranks.size();
            }
            data->ranks.push_back(std::move(row));
        }
        if (process.devices.empty()) {
            data->ranks.push_back(common);
        }
    }
    add_view(job, view, row_of_process, data);
    for (const UnreadableTrace& trace : job.unreadable) {
        data->unreadable.push_back({trace.file, trace.reason});
    }
}

}  // namespace fragtrace::analyzer
