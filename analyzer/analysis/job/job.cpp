#include "analyzer/analysis/job/job.h"

#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/threads.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/trace_outline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstFailures = 6;
constexpr std::size_t kMostProcesses = 65536;
constexpr std::string_view kCacheEnding = ".summary.json";
constexpr std::uint64_t kLargeTraceBytes = std::uint64_t{1} << 20;

// A sort key: processes that failed first come first. All processes that did not fail have equal
// keys.
auto order_of_failure(const ProcessSummary& process) {
    const auto oom = process.named_oom();
    const std::uint64_t at = oom ? *oom : process.end.failed() ? process.ended_at() : 0;
    const bool final = process.final_oom().has_value();
    return std::tuple(
        !oom, !final, !final && !process.end.failed(), !oom && ended_by_others(process), at);
}

std::string file_name(const std::string& path) {
    return fs::path(path).filename().string();
}

bool is_wanted(SummaryCache cache, const TraceFile& trace) {
    return cache == SummaryCache::kAlways ||
           (cache == SummaryCache::kLarge && trace.size_bytes >= kLargeTraceBytes);
}

// The summary beside a trace, if it is of the trace as it is now. It is trusted as much as the
// trace: it must belong to the trace's owner or to this user.
std::optional<ProcessSummary> kept_summary(const std::string& path, SummaryCache cache) {
    if (!is_wanted(cache, trace_file(path))) {
        return std::nullopt;
    }
    const std::string beside = path + std::string(kCacheEnding);
    struct stat trace = {};
    struct stat link = {};
    if (stat(path.c_str(), &trace) != 0 || lstat(beside.c_str(), &link) != 0 ||
        !S_ISREG(link.st_mode) || (link.st_uid != trace.st_uid && link.st_uid != geteuid())) {
        return std::nullopt;
    }
    return current_summary(path, beside);
}

// Reads the files of a job. Several threads share one object.
class JobReader {
  public:
    JobReader(const std::vector<std::string>& paths,
              SummaryCache cache,
              const std::function<void(std::size_t, std::size_t)>& progress)
        : paths_(paths), cache_(cache), progress_(progress), found_(paths.size()) {}

    // Takes one file after the other until none is left.
    void work() {
        for (std::size_t at = next_++; at < paths_.size(); at = next_++) {
            read(at);
            const std::lock_guard lock(mutex_);
            ++done_;
            if (progress_) {
                progress_(done_, paths_.size());
            }
        }
    }

    Job finish() {
        Job job;
        std::vector<ProcessSummary> all;
        for (std::size_t at = 0; at < paths_.size(); ++at) {
            for (ProcessSummary& process : found_[at].processes) {
                all.push_back(std::move(process));
            }
            for (UnreadableTrace& trace : found_[at].unreadable) {
                job.unreadable.push_back(std::move(trace));
            }
            if (!found_[at].reason.empty()) {
                job.unreadable.push_back({file_name(paths_[at]), found_[at].reason});
            }
        }
        job.processes = merged(std::move(all));
        job.unreadable = merged(std::move(job.unreadable), job.processes);
        return job;
    }

  private:
    struct Found {
        std::vector<ProcessSummary> processes;
        std::vector<UnreadableTrace> unreadable;  // as a file of summaries says
        std::string reason;                       // why the file cannot be read
    };

    void read(std::size_t at) {
        const std::string& path = paths_[at];
        const Status status = guarded(path, [&]() -> Status {
            if (is_summaries_file(path)) {
                return read_summaries(
                    path,
                    [&](ProcessSummary process) { take(at, &process); },
                    [&](UnreadableTrace trace) { take(at, &trace); });
            }
            if (auto kept = kept_summary(path, cache_)) {
                take(at, &*kept);
                return Ok{};
            }
            auto process = read_process(path);
            if (!process) {
                return process.error();
            }
            keep_summary(*process, cache_);
            take(at, &*process);
            return Ok{};
        });
        if (!status) {
            found_[at].reason = status.error().message;
        }
    }

    void take(std::size_t at, ProcessSummary* process) {
        if (has_room(at)) {
            found_[at].processes.push_back(std::move(*process));
        }
    }

    void take(std::size_t at, UnreadableTrace* trace) {
        if (has_room(at)) {
            found_[at].unreadable.push_back(std::move(*trace));
        }
    }

    bool has_room(std::size_t at) {
        if (processes_++ < kMostProcesses) {
            return true;
        }
        found_[at].reason = paths_[at] + ": more processes than a job can have (65,536)";
        return false;
    }

    const std::vector<std::string>& paths_;
    SummaryCache cache_;
    const std::function<void(std::size_t, std::size_t)>& progress_;
    std::vector<Found> found_;  // per path
    std::atomic<std::size_t> next_ = 0;
    std::atomic<std::size_t> processes_ = 0;
    std::mutex mutex_;
    std::size_t done_ = 0;
};

}  // namespace

bool is_long_trace(const std::string& path) {
    if (is_snapshot(path) || !import_name(path).empty()) {
        return false;
    }
    const Result<TraceOutline> outline = read_outline(path);
    return outline && outline->events > kLongTrace;
}

std::vector<std::string> files_of_job(const std::string& folder, std::error_code* error) {
    std::vector<std::string> paths = recordings_in(folder, error);
    std::vector<std::string> summaries;
    for (fs::directory_iterator at(folder, *error), end; !*error && at != end;
         at.increment(*error)) {
        const std::string path = at->path().string();
        if (!path.ends_with(".json") || !is_summaries_file(path)) {
            continue;
        }
        const bool cached = path.ends_with(kCacheEnding);
        const std::string trace = path.substr(0, path.size() - (cached ? kCacheEnding.size() : 0));
        if (!cached || !std::binary_search(paths.begin(), paths.end(), trace)) {
            summaries.push_back(path);
        }
    }
    paths.insert(paths.end(), summaries.begin(), summaries.end());
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::size_t traces_of(const Job& job) {
    return job.processes.size() + job.unreadable.size();
}

std::optional<ProcessSummary> current_summary(const std::string& path, const std::string& file) {
    const TraceFile now = trace_file(path);
    std::optional<ProcessSummary> summary;
    std::size_t summaries = 0;
    const Status read = read_summaries(file, [&](ProcessSummary process) {
        summary = std::move(process);
        ++summaries;
    });
    if (!read || summaries != 1 || now.modified_ns == 0 || summary->trace != now ||
        summary->file != file_name(path) || summary->analyzer_version != FRAGTRACE_VERSION) {
        return std::nullopt;
    }
    summary->path = path;
    return summary;
}

Result<ProcessSummary> read_process(const std::string& path) {
    const bool is_trace = !is_snapshot(path) && import_name(path).empty();
    if (is_trace) {
        if (const auto taken_over = take_over_ring(path); !taken_over) {
            return taken_over.error();
        }
    }
    const TraceFile trace = trace_file(path);
    const Result<TraceSummary> summary = summarize_trace(path);
    if (!summary) {
        return summary.error();
    }
    ProcessSummary process = summarize_process(*summary, path);
    process.trace = trace;
    if (const auto outline = read_outline(path); is_trace && outline) {
        set_place(outline->place, &process);
        process.end_ns = outline->end_ns;
        process.killed = outline->killed;
    }
    return process;
}

void keep_summary(const ProcessSummary& process, SummaryCache cache) {
    static std::mutex mutex;  // write_output() writes one file at a time
    if (process.path.empty() || process.end.ending == Ending::kRunning ||
        process.trace.modified_ns == 0 || !is_wanted(cache, process.trace)) {
        return;
    }
    const fs::path folder = fs::path(process.path).parent_path();
    struct stat status = {};
    if (stat(folder.empty() ? "." : folder.c_str(), &status) != 0 || status.st_uid != geteuid()) {
        return;
    }
    const std::string beside = process.path + std::string(kCacheEnding);
    const std::lock_guard lock(mutex);
    struct stat link = {};
    if (lstat(beside.c_str(), &link) == 0) {
        if (!S_ISREG(link.st_mode) || link.st_uid != geteuid() || !is_summaries_file(beside)) {
            return;
        }
        unlink(beside.c_str());  // this command may have read it, and would not replace it
    }
    (void)write_summaries(beside, {process});
}

Job read_job(const std::vector<std::string>& paths,
             SummaryCache cache,
             const std::function<void(std::size_t, std::size_t)>& progress) {
    JobReader reader(paths, cache, progress);
    on_threads(std::min(processors(), paths.size()), [&reader] { reader.work(); });
    return reader.finish();
}

bool survived_oom(const ProcessSummary& process) {
    const Ending ending = process.end.ending;
    return process.first_oom() && !process.final_oom() &&
           (ending == Ending::kNormal || ending == Ending::kQuickExit) && process.end.code == 0;
}

bool ended_by_others(const ProcessSummary& process) {
    const int signal = process.end.signal.value_or(0);
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

bool failed(const ProcessSummary& process) {
    return process.first_oom().has_value() || process.end.failed();
}

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
        } else {
            add_file(file, &joined[at->second]);
        }
    }
    *processes = std::move(joined);
}

// A process whose ancestor is recorded with the same rank inherited the rank. If NCCL named the
// rank, it is the process's own.
void find_helpers(std::vector<ProcessSummary>* processes) {
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
                                               std::string_view(process.path));
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

std::map<int, GenerationRanks> ranks_by_generation(const Job& job) {
    std::map<int, GenerationRanks> generations;
    for (const ProcessSummary& process : job.processes) {
        if (process.place.rank >= 0) {
            GenerationRanks& generation = generations[generation_of(process)];
            generation.ranks.insert(process.place.rank);
            generation.world_size =
                std::max(generation.world_size,
                         static_cast<std::size_t>(std::max(process.place.world_size, 0)));
        }
    }
    return generations;
}

// Few passes over the processes: a file of summaries may claim a generation for each of them.
std::vector<FirstFailure> first_failures(const Job& job) {
    struct Generation {
        std::optional<FirstFailure> first;
        std::set<std::tuple<std::uint32_t, std::string_view, std::string_view>> processes;
    };

    std::map<int, GenerationRanks> all_ranks = ranks_by_generation(job);
    std::map<int, Generation> generations;
    for (std::size_t i = 0; i < job.processes.size(); ++i) {
        const ProcessSummary& process = job.processes[i];
        Generation& generation = generations[generation_of(process)];
        generation.processes.emplace(
            process.pid, process.place.host, process.pid == 0 ? process.file : std::string_view());
        std::optional<FirstFailure>& first = generation.first;
        if (failed(process) && (!first || order_of_failure(process) <
                                              order_of_failure(job.processes[first->process]))) {
            const auto oom = process.named_oom();
            first = {.process = i,
                     .out_of_memory = oom.has_value(),
                     .at_unix_ns = oom ? *oom : process.ended_at(),
                     .until_unix_ns = oom ? oom : process.ended_by()};
        }
    }
    const GenerationRanks none;
    std::vector<FirstFailure> failures;
    for (auto& [number, generation] : generations) {
        if (generation.first) {
            const bool ranked = job.processes[generation.first->process].place.rank >= 0;
            const GenerationRanks& with_rank = ranked ? all_ranks[number] : none;
            generation.first->of = ranked ? with_rank.ranks.size() : generation.processes.size();
            generation.first->world_size = with_rank.world_size;
            failures.push_back(*generation.first);
        }
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
    const auto peak = [&](std::size_t i) { return peak_of(job.processes[i]); };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            const ProcessSummary& process = job.processes[i];
            return std::tuple(
                order_of_failure(process), ~process.sum(&RunFigures::retries), ~peak(i));
        };
        return key(a) < key(b);
    });
    // The highest and the lowest peak come right after the first failures.
    const auto failures = static_cast<std::size_t>(std::count_if(
        order.begin(), order.end(), [&](std::size_t i) { return failed(job.processes[i]); }));
    const std::size_t first =
        std::min({std::max<std::size_t>(failures, 1), kFirstFailures, order.size()});
    const auto rest = [&] { return order.begin() + static_cast<std::ptrdiff_t>(first); };
    const auto less = [&](std::size_t a, std::size_t b) { return peak(a) < peak(b); };
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
        for (const ProcessDevice& device : job.processes[at].devices) {
            more += device.blocks;
        }
        if (job.processes[at].path.empty()) {
            continue;
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
