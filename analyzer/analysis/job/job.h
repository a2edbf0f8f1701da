// The processes of a job: what each one's devices held at most, which failed, and in which order
// they matter. One trace is in memory at a time, and nothing of it stays but these figures.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
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
    std::uint64_t capacity_bytes = 0;  // the pool's; 0 = not known
    RunFigures run;
    std::optional<std::uint64_t> first_oom_ns = {};  // since the start of the trace
    std::uint64_t blocks = 0;                        // that a page of it would draw
    bool blocks_are_pool_blocks = false;  // false: the device's own allocations stand for them
};

struct JobProcess {
    int rank = -1;
    std::uint32_t pid = 0;  // 0: a snapshot, which does not tell
    std::string path;       // as it was given
    std::string file;
    std::string program;              // its command line
    std::uint64_t start_unix_ns = 0;  // 0 = not known
    std::uint64_t last_event_ns = 0;  // since the start of the trace
    ProcessEnd end;
    std::vector<JobDevice> devices;

    // Of all devices together; of peaks the sum of their own.
    [[nodiscard]] std::uint64_t sum(std::uint64_t RunFigures::*part) const;
};

struct UnreadableTrace {
    std::string file;
    std::string reason;
};

struct Job {
    std::vector<JobProcess> processes;  // by rank, those without one last
    std::vector<UnreadableTrace> unreadable;
};

JobProcess summarize_process(const Timeline& timeline, const std::string& path);
// The same of a long trace; the blocks of its devices are at most as many as its events.
JobProcess summarize_process(const TraceSummary& summary, const std::string& path);

// Traces with more events are summarized event by event, in little memory.
inline constexpr std::uint64_t kLongTrace = 2'000'000;
bool is_long_trace(const std::string& path);

// `progress` is told how many were read, of how many.
Job read_job(const std::vector<std::string>& paths,
             const std::function<void(std::size_t, std::size_t)>& progress = {});

// The process that failed first. Running out of memory counts before any other failure, and with
// an end of the process before without one: a program may catch it. Of processes that a signal
// ended which others send (SIGTERM, SIGINT, SIGHUP) none is the first where another failed.
struct FirstFailure {
    std::size_t process = 0;  // in Job::processes
    bool out_of_memory = false;
    std::size_t of = 0;  // processes in all: those with a rank, where it has one
};

// nullopt: none failed, as far as is known.
std::optional<FirstFailure> first_failure(const Job& job);

// Those with a device, as indices, by how much there is to see: first up to six that failed, in the
// order of first_failure(); without one the process with most retries; then the two with the
// highest and the lowest peak of reserved memory, so that a failure can be compared; then the rest
// by failure, retries and reserved memory.
std::vector<std::size_t> by_interest(const Job& job);

// Of these, in that order, at most so many processes, together of at most so many blocks: one that
// has no room is passed over for the next, but for the first, which is always among them.
std::vector<std::size_t> choose_whole(const Job& job, std::size_t processes, std::uint64_t blocks);

}  // namespace fragtrace::analyzer
