// The processes of a job: peaks of each device, which process failed, and in which order they
// matter. Only one trace at a time is in memory; only these figures are kept.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/model/job_place.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/process_end.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct JobDevice {
    DeviceId device = 0;
    std::string name;
    std::uint64_t capacity_bytes = 0;  // of the pool; 0 = not known
    RunFigures run;
    std::optional<std::uint64_t> first_oom_ns = {};  // since the start of the trace
    std::uint64_t blocks = 0;             // number of blocks that a page for this device would draw
    bool blocks_are_pool_blocks = false;  // false: these are the device's own allocations
};

// A process. Its recording may consist of several files: parts, and copies of a flight recorder.
struct JobProcess {
    // After read_job(): a process without a rank is a helper if it inherited one.
    JobPlace place;
    std::uint32_t pid = 0;  // 0: a snapshot, which has no process id
    // The recording's newest file, as given by the caller. The figures below are the largest ones
    // of all files. They are lower bounds if parts were removed.
    std::string path;
    std::string file;
    std::vector<std::string> other_files;  // without folders
    std::string failure_path;              // the file with the first out-of-memory; empty: `path`
    std::string program;                   // its command line
    std::uint64_t start_unix_ns = 0;       // 0 = not known
    std::uint64_t last_event_ns = 0;       // since the start of the trace
    ProcessEnd end;
    std::string import;  // the format of an imported recording; empty = none
    std::vector<JobDevice> devices;

    // The sum over all devices. A peak is thus the sum of the devices' own peaks.
    [[nodiscard]] std::uint64_t sum(std::uint64_t RunFigures::*part) const;
    // segments_known() of all devices.
    [[nodiscard]] bool all_segments_known() const;
};

struct UnreadableTrace {
    std::string file;
    std::string reason;
};

struct Job {
    // By generation and rank; processes without a rank come last.
    std::vector<JobProcess> processes;
    std::vector<UnreadableTrace> unreadable;
};

JobProcess summarize_process(const Timeline& timeline, const std::string& path);
// The same from the summary of a long trace.
JobProcess summarize_process(const TraceSummary& summary, const std::string& path);

// Longer traces are summarized event by event, which needs little memory.
inline constexpr std::uint64_t kLongTrace = 2'000'000;
bool is_long_trace(const std::string& path);

// Calls `progress(read, all)` after each trace.
Job read_job(const std::vector<std::string>& paths,
             const std::function<void(std::size_t, std::size_t)>& progress = {});

// The process that failed first. An out-of-memory counts before any other failure. Among
// out-of-memories, those whose process then failed count first, since a program may catch one.
// Processes ended by SIGTERM, SIGINT or SIGHUP count last, since others send these signals.
struct FirstFailure {
    std::size_t process = 0;  // index into Job::processes
    bool out_of_memory = false;
    // Number of processes in the same generation; if the failed one has a rank, of processes with a
    // rank.
    std::size_t of = 0;
};

// nullopt: no failure is known.
std::optional<FirstFailure> first_failure(const Job& job);

// The first failure of each generation that has one, in the order of generations. An elastic job
// starts all its ranks again after a failure: each start is a generation.
std::vector<FirstFailure> first_failures(const Job& job);

bool has_generations(const Job& job);

// Joins the files of each recording to one process, gives ranks that helper processes inherited
// back to their ancestors, and sorts. read_job() calls it.
void arrange(Job* job);

// Indices of the processes that have a device, the most interesting first. First up to six failed
// ones, in the order of first_failure(); if none failed, the process with most retries. Then the
// highest and the lowest peak of reserved memory, for comparison. Then the rest by failure, retries
// and reserved memory.
std::vector<std::size_t> by_interest(const Job& job);

// Chooses processes in the order of by_interest(): at most `processes`, with at most `blocks`
// blocks together. A process that does not fit is skipped. The first process is chosen even if it
// alone exceeds `blocks`.
std::vector<std::size_t> choose_whole(const Job& job, std::size_t processes, std::uint64_t blocks);

}  // namespace fragtrace::analyzer
