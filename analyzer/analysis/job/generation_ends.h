// How the processes of a job ended, by generation: which failed first, and what became of the
// others.
#pragma once

#include "analyzer/analysis/job/first_failure.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// How the processes of one generation ended. Indices are those of Job::processes.
struct GenerationEnd {
    int generation = 0;
    std::size_t processes = 0;  // a process that became another program by exec counts once
    std::optional<FirstFailure> first = {};
    // The other processes by how they ended. An out-of-memory counts if the process did not get
    // past it.
    std::size_t also_out_of_memory = 0;
    // Those that failed without one: before the first failure, perhaps before it, and all others;
    // most frequent first. After a first failure of another kind, only processes that SIGTERM,
    // SIGINT or SIGHUP ended are looked at for that.
    std::vector<std::pair<ProcessEnd, std::size_t>> failed_before = {};
    std::vector<std::pair<ProcessEnd, std::size_t>> perhaps_before = {};
    std::vector<std::pair<ProcessEnd, std::size_t>> failed_otherwise = {};
    std::size_t did_not_fail = 0;  // as far as is known
    // Of those that failed otherwise or did not fail: they got past an out-of-memory.
    std::size_t got_past_oom = 0;
    std::size_t helpers_out_of_memory = 0;  // whose rank ended normally
    std::size_t got_past_before = 0;        // before the first failure
    // An earlier program of the process that failed first got past an out-of-memory.
    bool earlier_program_got_past = false;
    // Of all processes: whether they died is not known, because their traces have no end and are
    // damaged, or of other hosts or containers.
    std::vector<std::size_t> end_unknown = {};
    // A process of another host that ran out of memory within a second or, if the first failure is
    // none, that failed within a second. Clocks of hosts differ, so which was first is not certain.
    // nullopt: none.
    std::optional<std::size_t> as_early = {};
    // When one of the two ended is not known exactly, or clocks may differ: the earliest process
    // that may have failed before the first. nullopt: none.
    std::optional<std::size_t> maybe_earlier = {};
    std::size_t world_size = 0;     // the largest that was recorded; 0 = not known
    std::size_t ranks_missing = 0;  // below the world size, without a readable trace here
    std::vector<std::pair<int, int>> missing = {};  // these: first and last, at most eight
};

// In the order of generations. Few passes over the processes, however many generations they claim.
std::vector<GenerationEnd> generation_ends(const Job& job);

}  // namespace fragtrace::analyzer
