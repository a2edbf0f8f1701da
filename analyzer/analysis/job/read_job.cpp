#include "analyzer/analysis/job/read_job.h"

#include "analyzer/analysis/job/merge_summaries.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/job/read_summaries.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/threads.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/trace_outline.h"
#include "analyzer/trace/traced_process.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostProcesses = 65536;
constexpr std::string_view kCacheEnding = ".summary.json";
constexpr std::uint64_t kLargeTraceBytes = std::uint64_t{1} << 20;

std::string file_name(const std::string& path) {
    return fs::path(path).filename().string();
}

bool end_is_known(const std::string& path) {
    const Result<TraceOutline> outline = read_outline(path);
    return outline && !outline->end.unknown();
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
    return is_longer_than(kLongTrace, path);
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
        summary->file != file_name(path) || summary->analyzer_version != FRAGTRACE_VERSION ||
        // This host may know now whether the process has ended.
        (summary->end.unknown() && summary->place.host == this_host() && end_is_known(path))) {
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
        if (process.damaged) {
            process.end = end_despite_damage(process.end, process.killed);
        }
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

}  // namespace fragtrace::analyzer
