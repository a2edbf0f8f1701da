#include "analyzer/analysis/job/job.h"

#include "analyzer/analysis/job/first_failure.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The newest file of a recording comes first: the whole one, then the newest part, then copies.
auto age_of_file(const ProcessSummary& file) {
    const bool copy = !file.place.copy_reason.empty();
    return std::tuple(copy, file.place.part != 0, ~file.place.part, ~file.last_event_ns);
}

void add_figures(const ProcessDevice& more, ProcessDevice* device) {
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
void add_file(const ProcessSummary& file, ProcessSummary* process) {
    const auto before = process->first_oom();
    const auto here = file.first_oom();
    if (here && (!before || *here < *before)) {
        process->failure_path = file.path;
    }
    process->other_files.push_back(file.file);
    for (const ProcessContext& context : file.contexts) {
        const bool known = std::any_of(
            process->contexts.begin(),
            process->contexts.end(),
            [&context](const ProcessContext& other) { return other.device == context.device; });
        if (!known) {
            process->contexts.push_back(context);
        }
    }
    process->last_event_ns = std::max(process->last_event_ns, file.last_event_ns);
    for (const ProcessDevice& device : file.devices) {
        const auto same = std::find_if(
            process->devices.begin(),
            process->devices.end(),
            [&device](const ProcessDevice& other) { return other.device == device.device; });
        if (same == process->devices.end()) {
            process->devices.push_back(device);
        } else {
            add_figures(device, &*same);
        }
    }
}

void join_files(std::vector<ProcessSummary>* processes) {
    std::stable_sort(
        processes->begin(), processes->end(), [](const ProcessSummary& a, const ProcessSummary& b) {
            return age_of_file(a) < age_of_file(b);
        });
    std::map<std::array<std::uint64_t, 2>, std::size_t> recordings;
    std::vector<ProcessSummary> joined;
    for (ProcessSummary& file : *processes) {
        const bool known = file.place.session != std::array<std::uint64_t, 2>{};
        const auto [at, first] = known ? recordings.emplace(file.place.session, joined.size())
                                       : std::pair(recordings.end(), true);
        if (first) {
            joined.push_back(std::move(file));
            // The newest part has the highest number; parts 2, 3 ... follow the first.
            joined.back().parts_missing = joined.back().place.part;
            joined.back().parts_missing -= joined.back().place.part != 0 ? 1 : 0;
        } else {
            ProcessSummary& process = joined[at->second];
            process.recording_gaps = process.recording_gaps || file.recording_gaps;
            process.damaged = process.damaged || file.damaged;
            process.pool_failures = std::max(process.pool_failures, file.pool_failures);
            process.parts_missing -= file.place.part != 0 && process.parts_missing != 0 ? 1 : 0;
            add_file(file, &process);
        }
    }
    *processes = std::move(joined);
}

// A process whose ancestor is recorded with the same rank inherited the rank. If NCCL named the
// rank, it is the process's own.
void find_helpers(std::vector<ProcessSummary>* processes) {
    std::map<ProcessKey, std::size_t> known;
    for (std::size_t i = 0; i < processes->size(); ++i) {
        const JobPlace& place = (*processes)[i].place;
        if (place.rank >= 0 && place.process.start_ticks != 0) {
            known.emplace(place.key_of(place.process), i);
        }
    }
    std::vector<std::size_t> helpers;
    for (std::size_t i = 0; i < processes->size(); ++i) {
        const JobPlace& place = (*processes)[i].place;
        const auto is_rank = [&](const ProcessId& ancestor) {
            const auto found = known.find(place.key_of(ancestor));
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
    std::map<std::pair<int, int>, bool> ended_normally;  // by generation and rank; of all processes
    for (const ProcessSummary& process : *processes) {
        if (process.place.rank >= 0) {
            const auto at =
                ended_normally.emplace(std::pair(generation_of(process), process.place.rank), true);
            at.first->second = at.first->second && process.end.code == 0;
        }
    }
    for (ProcessSummary& process : *processes) {
        const auto rank =
            ended_normally.find({generation_of(process), process.place.inherited_rank});
        process.rank_ended_normally = rank != ended_normally.end() && rank->second;
    }
}

// A process that became another program by exec is counted under that program.
void find_earlier_programs(std::vector<ProcessSummary>* processes) {
    std::map<ProcessKey, int> ranks;
    for (const ProcessSummary& process : *processes) {
        const JobPlace& place = process.place;
        if (process.end.ending != Ending::kExec && place.rank >= 0) {
            ranks.emplace(place.key_of(place.process), place.rank);
        }
    }
    for (ProcessSummary& process : *processes) {
        JobPlace& place = process.place;
        const auto later = ranks.find(place.key_of(place.process));
        if (process.end.ending == Ending::kExec && later != ranks.end() &&
            place.process.start_ticks != 0) {
            place.inherited_rank = later->second;
            place.rank = -1;
            place.local_rank = -1;
        }
    }
}

// Fills replaced_ns and has_later_program: the next program of the process begins after the exec.
void find_replaced(std::vector<ProcessSummary>* processes) {
    const auto id_of = [](const ProcessSummary& process) {
        return process.place.key_of(process.place.process);
    };
    std::map<ProcessKey, std::set<std::uint64_t>> starts;
    for (const ProcessSummary& process : *processes) {
        starts[id_of(process)].insert(process.start_unix_ns);
    }
    for (ProcessSummary& process : *processes) {
        const std::set<std::uint64_t>& all = starts[id_of(process)];
        const auto next = all.upper_bound(process.start_unix_ns);
        const bool known = process.place.process.start_ticks != 0 && process.start_unix_ns != 0;
        process.has_later_program =
            process.end.ending == Ending::kExec && known && next != all.end();
        if (process.end.ending == Ending::kExec && process.killed.seen_ns) {
            process.replaced_ns = process.killed.seen_ns;
        } else if (process.has_later_program) {
            process.replaced_ns = std::max(*next - process.start_unix_ns, process.last_event_ns);
        }
    }
}

}  // namespace

void tell_apart(std::vector<ProcessSummary>* processes) {
    using Name = std::tuple<int, int, std::uint32_t>;  // generation, rank, process id
    std::map<Name, std::size_t> names;
    std::map<Name, std::size_t> with_pid;
    const auto name_of = [](const ProcessSummary& process) {
        return Name(
            generation_of(process), process.place.rank, process.place.rank >= 0 ? 0 : process.pid);
    };
    const auto with_pid_of = [](const ProcessSummary& process) {
        return Name(generation_of(process), process.place.rank, process.pid);
    };
    for (const ProcessSummary& process : *processes) {
        ++names[name_of(process)];
        ++with_pid[with_pid_of(process)];
    }
    for (ProcessSummary& process : *processes) {
        const bool named_by_file = process.pid == 0 && process.place.rank < 0;
        process.told_apart_by = named_by_file || names[name_of(process)] == 1 ? ""
                                : process.pid != 0 && with_pid[with_pid_of(process)] == 1
                                    ? fmt::format("pid {}", process.pid)
                                    : process.file;
    }
}

bool same_process(const ProcessSummary& a, const ProcessSummary& b) {
    return a.pid == b.pid && a.place.same_process_ids(b.place) &&
           a.place.process.start_ticks != 0 &&
           a.place.process.start_ticks == b.place.process.start_ticks;
}

void find_survivors(std::vector<ProcessSummary>* processes) {
    // An exit takes a while, and others fail when the process is gone.
    constexpr std::uint64_t kExitNs = 500'000'000;
    // When the first one had failed on each machine, by generation; of all processes, and of ranks.
    std::map<std::pair<int, bool>, std::map<std::string, std::uint64_t>> failures;
    for (const ProcessSummary& process : *processes) {
        const auto by = process.ended_by();
        if (!process.end.failed() || ended_by_others(process) || !by ||
            process.start_unix_ns == 0) {
            continue;
        }
        for (const bool ranks_only : {false, true}) {
            if (!ranks_only || process.place.rank >= 0) {
                auto& on_machines = failures[{generation_of(process), ranks_only}];
                const auto at = on_machines.emplace(process.place.machine(), *by).first;
                at->second = std::min(at->second, *by);
            }
        }
    }
    for (ProcessSummary& process : *processes) {
        process.outlived_failure = false;
        const bool ended_normally = process.end.code == 0 && process.end_ns;
        const auto of = failures.find({generation_of(process), process.place.rank >= 0});
        if (!process.first_oom() || !ended_normally || of == failures.end()) {
            continue;
        }
        process.outlived_failure =
            std::any_of(of->second.begin(), of->second.end(), [&process](const auto& failed) {
                const bool one_clock = failed.first == process.place.machine();
                const std::uint64_t margin = kExitNs + (one_clock ? 0 : kClocksDifferNs);
                return failed.second + margin < process.ended_at();
            });
    }
}

void arrange(Job* job) {
    join_files(&job->processes);
    find_replaced(&job->processes);
    find_earlier_programs(&job->processes);
    find_helpers(&job->processes);
    find_survivors(&job->processes);
    tell_apart(&job->processes);
    std::stable_sort(job->processes.begin(),
                     job->processes.end(),
                     [](const ProcessSummary& a, const ProcessSummary& b) {
                         const auto key = [](const ProcessSummary& process) {
                             const JobPlace& place = process.place;
                             return std::tuple(place.rank < 0,
                                               std::max(place.generation, 0),
                                               place.rank,
                                               std::string_view(place.host),
                                               process.pid,
                                               process.start_unix_ns,
                                               std::string_view(process.file));
                         };
                         return key(a) < key(b);
                     });
}

int generation_of(const ProcessSummary& process) {
    return std::max(process.place.generation, 0);
}

bool has_generations(const Job& job) {
    return std::any_of(
        job.processes.begin(), job.processes.end(), [&job](const ProcessSummary& process) {
            return generation_of(process) != generation_of(job.processes.front());
        });
}

}  // namespace fragtrace::analyzer
