// How the processes of a job ended, by generation: which failed first, and what became of the
// others.
#pragma once

#include "analyzer/analysis/job/first_failure.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// How the processes of one generation ended.
struct GenerationEnd {
    int generation = 0;
    std::size_t processes = 0;
    std::optional<FirstFailure> first = {};
    // The other processes by how they ended, most frequent first: those that failed without an
    // out-of-memory of their own, and all others.
    std::size_t also_out_of_memory = 0;
    std::vector<std::pair<ProcessEnd, std::size_t>> failed_otherwise = {};
    std::size_t did_not_fail = 0;  // as far as is known
    // An out-of-memory of another host within a second of the first one. Clocks of hosts differ, so
    // which was first is then not certain. nullopt: none.
    std::optional<std::size_t> as_early = {};
    // When the first one ended is not known exactly, and it did not run out of memory: another
    // process that may have failed before it. nullopt: none.
    std::optional<std::size_t> maybe_earlier = {};
    std::size_t world_size = 0;     // the largest that was recorded; 0 = not known
    std::size_t ranks_missing = 0;  // below the world size, without a readable trace here
    std::vector<std::pair<int, int>> missing = {};  // these: first and last, at most eight
};

// In the order of generations. Few passes over the processes, however many generations they claim.
std::vector<GenerationEnd> generation_ends(const Job& job);

}  // namespace fragtrace::analyzer
