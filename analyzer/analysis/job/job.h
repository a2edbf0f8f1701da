// The processes of a job: how their summaries are read, which process failed first, and in which
// order they matter. Of each trace only its summary is kept.
#pragma once

#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/model/timeline.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Job {
    // After arrange(): by generation and rank; processes without a rank come last.
    std::vector<ProcessSummary> processes;
    std::vector<UnreadableTrace> unreadable;
};

// Longer traces are summarized event by event, which needs little memory.
inline constexpr std::uint64_t kLongTrace = 2'000'000;
bool is_long_trace(const std::string& path);

// Whether summaries are kept in files beside their traces, TRACE.summary.json.
enum class SummaryCache : std::uint8_t {
    kNever,   // they are neither read nor written
    kLarge,   // of traces that take a noticeable time to read
    kAlways,  // of all traces
};

// The traces, snapshots, imports and summaries in a folder, sorted by name. A summary beside its
// trace is left out.
std::vector<std::string> files_of_job(const std::string& folder, std::error_code* error);

// Reads traces and files of summaries, on all cores. A trace and its summary count once. The
// processes are merged, but not arranged. Calls `progress(read, all)` after each file, one at a
// time.
Job read_job(const std::vector<std::string>& paths,
             SummaryCache cache = SummaryCache::kNever,
             const std::function<void(std::size_t, std::size_t)>& progress = {});

// Number of traces of the job, with those that cannot be read. Before arrange().
std::size_t traces_of(const Job& job);

// The summary in `file`, if it is that of the trace at `path` as it is now, alone there, and
// computed by this version of fraganalyze.
std::optional<ProcessSummary> current_summary(const std::string& path, const std::string& file);

// Summarizes one trace, snapshot or import. First moves the ring of an ended process into its
// trace.
Result<ProcessSummary> read_process(const std::string& path);

// Writes the summary beside its trace, if `cache` asks for it, the trace is complete, and its
// folder belongs to this user. Nothing is written through a symbolic link. If it cannot be written,
// it is computed again next time. Thread-safe.
void keep_summary(const ProcessSummary& process, SummaryCache cache);

// The process that failed first. An out-of-memory counts before any other failure. A program may
// catch one and go on, so among out-of-memories those count first after which the process was
// served no request, by their time, then those whose process failed later.
// Processes that failed otherwise count by the time of their end or, if it is not known, by the
// earliest that it can be. Those ended by SIGTERM, SIGINT or SIGHUP count last, since others send
// these signals.
struct FirstFailure {
    std::size_t process = 0;  // index into Job::processes
    bool out_of_memory = false;
    // When it ran out of memory or, without an out-of-memory, when it ended, on the clock of
    // ProcessSummary::first_oom().
    std::uint64_t at_unix_ns = 0;
    // It failed then or earlier; equal to at_unix_ns if the time is exact. nullopt: not known.
    std::optional<std::uint64_t> until_unix_ns = {};
    // Number of processes; if the failed one has a rank, of processes with a rank. Of the same
    // generation.
    std::size_t of = 0;
    // GenerationRanks::world_size, if the failed process has a rank; else 0. If it is larger than
    // `of`, ranks have no trace here.
    std::size_t world_size = 0;
};

// Whether a process ran out of memory, or ended by a signal or with an exit code other than 0.
bool failed(const ProcessSummary& process);

// Whether a process ran out of memory, got past it and ended normally.
bool survived_oom(const ProcessSummary& process);

// Whether SIGTERM, SIGINT or SIGHUP ended a process.
bool ended_by_others(const ProcessSummary& process);

// The ranks of a generation.
struct GenerationRanks {
    std::set<int> ranks = {};    // those with a process
    std::size_t world_size = 0;  // the largest that was recorded; 0 = not known
};

// By generation; only those with a rank.
std::map<int, GenerationRanks> ranks_by_generation(const Job& job);

// nullopt: no failure is known.
std::optional<FirstFailure> first_failure(const Job& job);

// The first failure of each generation that has one, in the order of generations. An elastic job
// starts all its ranks again after a failure: each start is a generation.
std::vector<FirstFailure> first_failures(const Job& job);

// Processes without a known generation belong to the first, 0.
int generation_of(const ProcessSummary& process);
bool has_generations(const Job& job);

// Joins the files of each recording to one process, gives ranks that helper processes inherited
// back to their ancestors, and sorts. Merge summaries before, and arrange them last.
void arrange(Job* job);

// Indices of the processes that have a device, the most interesting first. First up to six failed
// ones, in the order of first_failure(); if none failed, the process with most retries. Then the
// highest and the lowest peak (peak_of()), for comparison. Then the rest by failure, retries and
// peak.
std::vector<std::size_t> by_interest(const Job& job);

// Chooses processes in the order of by_interest(): at most `processes`, with at most `blocks`
// blocks together. A process that does not fit is skipped, and so is one without a trace. The first
// process is chosen even if it alone exceeds `blocks`.
std::vector<std::size_t> choose_whole(const Job& job, std::size_t processes, std::uint64_t blocks);

}  // namespace fragtrace::analyzer
