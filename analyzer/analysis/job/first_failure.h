// Which process of a job failed first, and in which order its processes matter.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// The process that failed first, in this order:
// 1. out-of-memories that ended the process or after which it was served nothing
//    (ProcessSummary::fatal_oom()), by their time. A rank that is known to have failed earlier, not
//    because of SIGTERM, SIGINT or SIGHUP, comes before them.
// 2. processes that died or exited with a code other than 0, by the time of their end or, if it is
//    not known, by the earliest that it can be.
// 3. those ended by SIGTERM, SIGINT or SIGHUP, since others send these signals.
// 4. out-of-memories of helpers whose rank ended normally.
// 5. out-of-memories that a program got past.
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
    // Other processes had run out of memory before, and got past it.
    bool others_got_past = false;
    // If the failure is not an out-of-memory: the process whose fatal out-of-memory came first
    // after it. nullopt: none.
    std::optional<std::size_t> later_oom = {};
};

// Whether a process ran out of memory, or ended by a signal or with an exit code other than 0.
bool failed(const ProcessSummary& process);

// Whether a process ran out of memory, got past it and ended normally.
bool survived_oom(const ProcessSummary& process);

// Whether SIGTERM, SIGINT or SIGHUP ended a process.
bool ended_by_others(const ProcessSummary& process);

// Clocks of hosts are assumed to differ by less than this.
inline constexpr std::uint64_t kClocksDifferNs = 1'000'000'000;

// Whether a process without a fatal out-of-memory ended before `at_unix_ns` on the clock of
// `place`.
enum class EndedBefore : std::uint8_t {
    kYes,
    kPerhaps,  // its end is not known exactly, or clocks of hosts may differ
    kNo        // as far as is known: the recorder notes every 100 ms that a process runs
};

EndedBefore ended_before(const ProcessSummary& process,
                         std::uint64_t at_unix_ns,
                         const JobPlace& place);

// The failure of one process as if it was the first; without the figures of its generation.
FirstFailure failure_of(const Job& job, std::size_t i);

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

// Indices of the processes that have a device, the most interesting first. First up to six failed
// ones, in the order of first_failure(); if none failed, the process with most retries. Then the
// highest and the lowest peak (peak_of()), for comparison. Then the rest: by failure, those unlike
// most others (their group is at most a tenth as large as the largest), by retries and peak.
std::vector<std::size_t> by_interest(const Job& job);

// The number of blocks of all devices of the process.
std::uint64_t blocks_of(const ProcessSummary& process);

struct WholeLimits {
    std::size_t processes = 0;
    std::size_t devices = 0;   // of these processes together
    std::uint64_t blocks = 0;  // of these processes together
};

// Chooses processes in the order of by_interest(), within the limits. A process that does not fit
// is skipped, and so is one without a trace. The first process is chosen even if it alone exceeds a
// limit.
std::vector<std::size_t> choose_whole(const Job& job, const WholeLimits& most);

}  // namespace fragtrace::analyzer
