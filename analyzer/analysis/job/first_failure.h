// Which process of a job failed first, and in which order its processes matter.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace fragtrace::analyzer {

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
