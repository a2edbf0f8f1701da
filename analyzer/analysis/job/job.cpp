#include "analyzer/analysis/job/job.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/replay/script.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/trace_outline.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kFirstFailures = 6;

// Devices whose memory was requested, and those where a call failed because of too little memory.
std::vector<DeviceId> devices_of(const Timeline& timeline) {
    std::vector<DeviceId> devices = replayable_devices(timeline);
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        if (timeline.events.kind(i) == EventKind::kCallOutOfMemory) {
            const DeviceId device = timeline.events[i].device;
            if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
                devices.push_back(device);
            }
        }
    }
    return devices;
}

// Time of the first OOM, on a clock that all processes share. If a trace does not say when it
// began, on that trace's own clock.
std::optional<std::uint64_t> first_oom(const JobProcess& process) {
    std::optional<std::uint64_t> first;
    for (const JobDevice& device : process.devices) {
        if (device.first_oom_ns) {
            const std::uint64_t at = process.start_unix_ns + *device.first_oom_ns;
            first = std::min(first.value_or(at), at);
        }
    }
    return first;
}

bool ended_by_others(const JobProcess& process) {
    const int signal = process.end.signal.value_or(0);
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool failed(const JobProcess& process) {
    return first_oom(process).has_value() || process.end.failed();
}

// A sort key: processes that failed first come first. All processes that did not fail have equal
// keys.
auto order_of_failure(const JobProcess& process) {
    const auto oom = first_oom(process);
    const std::uint64_t at = oom                    ? *oom
                             : process.end.failed() ? process.start_unix_ns + process.last_event_ns
                                                    : 0;
    return std::tuple(!oom, !process.end.failed(), !oom && ended_by_others(process), at);
}

}  // namespace

bool JobProcess::all_segments_known() const {
    return std::all_of(devices.begin(), devices.end(), [](const JobDevice& device) {
        return segments_known(device.run);
    });
}

std::uint64_t JobProcess::sum(std::uint64_t RunFigures::*part) const {
    std::uint64_t all = 0;
    for (const JobDevice& device : devices) {
        all += device.run.*part;
    }
    return all;
}

namespace {

JobProcess process_of(const Timeline& timeline, const std::string& path) {
    JobProcess process;
    process.rank = timeline.rank;
    process.pid = timeline.pid;
    process.path = path;
    process.file = std::filesystem::path(path).filename().string();
    process.program = timeline.fact("command_line", timeline.path);
    process.start_unix_ns = timeline.start_unix_ns;
    process.end = process_end(timeline.ending, timeline.facts);
    process.import = timeline.fact("import");
    return process;
}

JobDevice device_of(const Timeline& timeline, DeviceId id, const DeviceMetrics& metrics) {
    JobDevice device;
    device.device = id;
    device.name = device_name(timeline, id);
    device.capacity_bytes = metrics.capacity_bytes;
    device.run = metrics.summary;
    device.first_oom_ns = metrics.first_oom_ns;
    device.blocks_are_pool_blocks = metrics.block_layer;
    device.blocks = metrics.blocks;
    return device;
}

Result<JobProcess> read_process(const std::string& path) {
    if (is_long_trace(path)) {
        if (const auto taken_over = take_over_ring(path); !taken_over) {
            return taken_over.error();
        }
        const Result<TraceSummary> summary = summarize_trace(path, false);
        if (!summary) {
            return summary.error();
        }
        return summarize_process(*summary, path);
    }
    const auto timeline = read_input(path, {}, true);
    if (!timeline) {
        return timeline.error();
    }
    return summarize_process(*timeline, path);
}

}  // namespace

JobProcess summarize_process(const Timeline& timeline, const std::string& path) {
    JobProcess process = process_of(timeline, path);
    process.last_event_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    const std::vector<DeviceId> devices = devices_of(timeline);
    const std::vector<DeviceMetrics> metrics = measure(timeline, devices).devices;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        process.devices.push_back(device_of(timeline, devices[i], metrics[i]));
    }
    return process;
}

JobProcess summarize_process(const TraceSummary& summary, const std::string& path) {
    JobProcess process = process_of(summary.tables, path);
    process.last_event_ns = summary.last_event_ns;
    for (const DeviceSummary& device : summary.devices) {
        process.devices.push_back(device_of(summary.tables, device.device, device.metrics));
    }
    return process;
}

bool is_long_trace(const std::string& path) {
    if (is_snapshot(path) || !import_name(path).empty()) {
        return false;
    }
    const Result<TraceOutline> outline = read_outline(path);
    return outline && outline->events > kLongTrace;
}

Job read_job(const std::vector<std::string>& paths,
             const std::function<void(std::size_t, std::size_t)>& progress) {
    Job job;
    for (const std::string& path : paths) {
        auto process = guarded(path, [&path] { return read_process(path); });
        if (process) {
            job.processes.push_back(std::move(process).value());
        } else {
            job.unreadable.push_back(
                {std::filesystem::path(path).filename().string(), process.error().message});
        }
        if (progress) {
            progress(job.processes.size() + job.unreadable.size(), paths.size());
        }
    }
    std::stable_sort(
        job.processes.begin(), job.processes.end(), [](const JobProcess& a, const JobProcess& b) {
            return std::tuple(a.rank < 0, a.rank, a.pid) < std::tuple(b.rank < 0, b.rank, b.pid);
        });
    return job;
}

std::optional<FirstFailure> first_failure(const Job& job) {
    std::optional<FirstFailure> first;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const JobProcess& process = job.processes[i];
        if (failed(process) && (!first || order_of_failure(process) <
                                              order_of_failure(job.processes[first->process]))) {
            first = {.process = i, .out_of_memory = first_oom(process).has_value()};
        }
    }
    if (first) {
        const bool ranked = job.processes[first->process].rank >= 0;
        std::set<std::pair<std::int64_t, std::string>> all;
        for (const JobProcess& process : job.processes) {
            if (ranked && process.rank >= 0) {
                all.emplace(process.rank, "");
            } else if (!ranked) {
                all.emplace(process.pid, process.pid == 0 ? process.file : "");
            }
        }
        first->of = all.size();
    }
    return first;
}

std::vector<std::size_t> by_interest(const Job& job) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        if (!job.processes[i].devices.empty()) {
            order.push_back(i);
        }
    }
    const auto reserved = [&](std::size_t i) {
        return job.processes[i].sum(&RunFigures::peak_reserved);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            const JobProcess& process = job.processes[i];
            return std::tuple(
                order_of_failure(process), ~process.sum(&RunFigures::retries), ~reserved(i));
        };
        return key(a) < key(b);
    });
    // The highest and the lowest peak come right after the first failures.
    const auto failures = static_cast<std::size_t>(std::count_if(
        order.begin(), order.end(), [&](std::size_t i) { return failed(job.processes[i]); }));
    const std::size_t first =
        std::min({std::max<std::size_t>(failures, 1), kFirstFailures, order.size()});
    const auto rest = [&] { return order.begin() + static_cast<std::ptrdiff_t>(first); };
    const auto less = [&](std::size_t a, std::size_t b) { return reserved(a) < reserved(b); };
    if (rest() != order.end()) {
        const auto lowest = std::min_element(rest(), order.end(), less);
        std::rotate(rest(), lowest, lowest + 1);
        const auto highest = std::max_element(rest(), order.end(), less);
        std::rotate(rest(), highest, highest + 1);
    }
    return order;
}

std::vector<std::size_t> choose_whole(const Job& job, std::size_t processes, std::uint64_t blocks) {
    std::vector<std::size_t> chosen;
    std::uint64_t used = 0;
    for (const std::size_t at : by_interest(job)) {
        std::uint64_t more = 0;
        for (const JobDevice& device : job.processes[at].devices) {
            more += device.blocks;
        }
        const bool has_room = chosen.empty() || used + more <= blocks;
        if (has_room && chosen.size() < processes) {
            chosen.push_back(at);
            used += more;
        }
    }
    return chosen;
}

}  // namespace fragtrace::analyzer
