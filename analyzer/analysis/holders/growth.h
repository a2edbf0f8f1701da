// What a run holds more and more of, and the peaks before and after its first iteration. Plain
// data; docs/metrics.md, Growth.
#pragma once

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/metrics/maximum_history.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// A place whose bytes at the begins of iterations never fell and rose at half of them or more.
struct GrowingPlace {
    HoldingPlace place;  // held: more at the last begin than at the first
    std::uint64_t bytes_at_last = 0;
    std::uint32_t times_grown = 0;
    // Less than a quarter as much an iteration in the second half as in the first: what it grew so
    // far says nothing about what follows.
    bool slows = false;
};

struct Growth {
    std::size_t first = 0;  // iterations whose begins were compared; 0 = too few of them
    std::size_t last = 0;
    // A fifth or more of the requests of iterations end in their iteration: a run that repeats
    // itself, and not one that loads its data piece by piece.
    bool repeats = false;
    std::int64_t bytes = 0;  // allocated by the pool's blocks, at the last begin less at the first
    std::vector<GrowingPlace> places;  // most bytes first, at most kMostPlaces
};

// `first_failed`: the first out-of-memory of the device, or kNoEvent. Begins after it are not
// compared, unless those before it are too few.
Growth growth_of(const RunHistory& history, EventIndex first_failed, Symbolizer* symbols);

// Peaks of the record up to the end of the first iteration, and from the second on.
struct IterationPeaks {
    bool known = false;
    std::uint64_t warmup_allocated = 0;
    std::uint64_t warmup_reserved = 0;
    std::uint64_t steady_allocated = 0;
    std::uint64_t steady_reserved = 0;
};

IterationPeaks iteration_peaks(const PeakHistory& history, const Iterations& iterations);

}  // namespace fragtrace::analyzer
