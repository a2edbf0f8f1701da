#include "analyzer/analysis/job/job.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/replay/script.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/trace_outline.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
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
    process.place.rank = timeline.rank;
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

Result<JobProcess> summarize_file(const std::string& path, bool is_long) {
    if (is_long) {
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

Result<JobProcess> read_process(const std::string& path) {
    if (is_snapshot(path) || !import_name(path).empty()) {
        return summarize_file(path, false);
    }
    const Result<TraceOutline> outline = read_outline(path);
    Result<JobProcess> process = summarize_file(path, outline && outline->events > kLongTrace);
    if (process && outline) {
        process->place = outline->place;
    }
    return process;
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
    arrange(&job);
    return job;
}

namespace {

// The newest file of a recording comes first: the whole one, then the newest part, then copies.
auto age_of_file(const JobProcess& file) {
    const bool copy = !file.place.copy_reason.empty();
    return std::tuple(copy, file.place.part != 0, ~file.place.part, ~file.last_event_ns);
}

void add_figures(const JobDevice& more, JobDevice* device) {
    RunFigures& run = device->run;
    const auto take_larger = [&](std::uint64_t RunFigures::*figure) {
        run.*figure = std::max(run.*figure, more.run.*figure);
    };
    for (const auto figure : {&RunFigures::peak_requested,
                              &RunFigures::peak_allocated,
                              &RunFigures::peak_active,
                              &RunFigures::peak_past_pool,
                              &RunFigures::peak_with_past_pool,
                              &RunFigures::segments_allocated,
                              &RunFigures::segments_freed,
                              &RunFigures::retries,
                              &RunFigures::ooms,
                              &RunFigures::driver_time_ns}) {
        take_larger(figure);
    }
    if (more.run.peak_reserved > run.peak_reserved) {
        run.peak_reserved = more.run.peak_reserved;
        run.waste_at_peak = more.run.waste_at_peak;
    }
    if (more.first_oom_ns) {
        device->first_oom_ns =
            std::min(device->first_oom_ns.value_or(*more.first_oom_ns), *more.first_oom_ns);
    }
}

// Adds an older file of the same recording.
void add_file(const JobProcess& file, JobProcess* process) {
    const auto before = first_oom(*process);
    const auto here = first_oom(file);
    if (here && (!before || *here < *before)) {
        process->failure_path = file.path;
    }
    process->other_files.push_back(file.file);
    process->last_event_ns = std::max(process->last_event_ns, file.last_event_ns);
    for (const JobDevice& device : file.devices) {
        const auto same = std::find_if(
            process->devices.begin(), process->devices.end(), [&device](const JobDevice& other) {
                return other.device == device.device;
            });
        if (same == process->devices.end()) {
            process->devices.push_back(device);
        } else {
            add_figures(device, &*same);
        }
    }
}

void join_files(std::vector<JobProcess>* processes) {
    std::stable_sort(
        processes->begin(), processes->end(), [](const JobProcess& a, const JobProcess& b) {
            return age_of_file(a) < age_of_file(b);
        });
    std::map<std::array<std::uint64_t, 2>, std::size_t> recordings;
    std::vector<JobProcess> joined;
    for (JobProcess& file : *processes) {
        const bool known = file.place.session != std::array<std::uint64_t, 2>{};
        const auto [at, first] = known ? recordings.emplace(file.place.session, joined.size())
                                       : std::pair(recordings.end(), true);
        if (first) {
            joined.push_back(std::move(file));
        } else {
            add_file(file, &joined[at->second]);
        }
    }
    *processes = std::move(joined);
}

// A process whose ancestor is recorded with the same rank inherited the rank. If NCCL named the
// rank, it is the process's own.
void find_helpers(std::vector<JobProcess>* processes) {
    std::map<std::tuple<std::string, std::uint32_t, std::uint64_t>, std::size_t> known;
    for (std::size_t i = 0; i < processes->size(); ++i) {
        const JobPlace& place = (*processes)[i].place;
        if (place.rank >= 0 && place.process.start_ticks != 0) {
            known.emplace(std::tuple(place.host, place.process.pid, place.process.start_ticks), i);
        }
    }
    std::vector<std::size_t> helpers;
    for (std::size_t i = 0; i < processes->size(); ++i) {
        const JobPlace& place = (*processes)[i].place;
        const auto is_rank = [&](const ProcessId& ancestor) {
            const auto found = known.find({place.host, ancestor.pid, ancestor.start_ticks});
            if (found == known.end()) {
                return false;
            }
            const JobPlace& other = (*processes)[found->second].place;
            return other.rank == place.rank && other.generation == place.generation;
        };
        if (place.rank >= 0 && place.rank_source != kRankFromNccl &&
            std::any_of(place.ancestors.begin(), place.ancestors.end(), is_rank)) {
            helpers.push_back(i);
        }
    }
    for (const std::size_t i : helpers) {
        JobPlace& place = (*processes)[i].place;
        place.inherited_rank = std::exchange(place.rank, -1);
        place.local_rank = -1;
    }
}

}  // namespace

void arrange(Job* job) {
    join_files(&job->processes);
    find_helpers(&job->processes);
    std::stable_sort(
        job->processes.begin(), job->processes.end(), [](const JobProcess& a, const JobProcess& b) {
            const auto key = [](const JobProcess& process) {
                const JobPlace& place = process.place;
                return std::tuple(place.rank < 0,
                                  std::max(place.generation, 0),
                                  place.rank,
                                  std::string_view(place.host),
                                  process.pid,
                                  std::string_view(process.path));
            };
            return key(a) < key(b);
        });
}

bool has_generations(const Job& job) {
    std::set<int> generations;
    for (const JobProcess& process : job.processes) {
        generations.insert(std::max(process.place.generation, 0));
    }
    return generations.size() > 1;
}

std::vector<FirstFailure> first_failures(const Job& job) {
    const auto generation_of = [&job](std::size_t process) {
        return std::max(job.processes[process].place.generation, 0);
    };
    std::map<int, FirstFailure> first;  // by generation
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const JobProcess& process = job.processes[i];
        const auto found = first.find(generation_of(i));
        if (failed(process) &&
            (found == first.end() ||
             order_of_failure(process) < order_of_failure(job.processes[found->second.process]))) {
            first[generation_of(i)] = {.process = i,
                                       .out_of_memory = first_oom(process).has_value()};
        }
    }
    std::vector<FirstFailure> failures;
    for (auto& [generation, failure] : first) {
        const bool ranked = job.processes[failure.process].place.rank >= 0;
        std::set<std::tuple<std::int64_t, std::string, std::string>> all;
        for (std::size_t i = 0; i < job.processes.size(); ++i) {
            const JobProcess& process = job.processes[i];
            if (generation_of(i) != generation) {
                continue;
            }
            if (ranked && process.place.rank >= 0) {
                all.emplace(process.place.rank, "", "");
            } else if (!ranked) {
                all.emplace(process.pid, process.place.host, process.pid == 0 ? process.file : "");
            }
        }
        failure.of = all.size();
        failures.push_back(failure);
    }
    return failures;
}

std::optional<FirstFailure> first_failure(const Job& job) {
    const std::vector<FirstFailure> failures = first_failures(job);
    const auto first = std::min_element(
        failures.begin(), failures.end(), [&job](const FirstFailure& a, const FirstFailure& b) {
            return order_of_failure(job.processes[a.process]) <
                   order_of_failure(job.processes[b.process]);
        });
    return first == failures.end() ? std::nullopt : std::optional(*first);
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
