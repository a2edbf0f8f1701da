// Memory that grows during a run, and the peaks before and after its first iteration. Plain data;
// docs/metrics.md, Growth.
#pragma once

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/metrics/maximum_history.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// A place whose bytes at the starts of iterations never fell, and rose at half of these starts or
// more.
struct GrowingLine {
    HoldingLine place;  // held: bytes at the last start minus bytes at the first
    std::uint64_t bytes_at_last = 0;
    std::uint32_t times_grown = 0;
    // The second half grew less than a quarter as fast, per iteration, as the first. Such growth
    // says nothing about what follows.
    bool slows = false;
    // Less than half of bytes_at_last was live at the first out-of-memory, so the line did not
    // cause it. Only known if the last start compared is before it.
    bool freed_before_failure = false;
};

struct Growth {
    std::size_t first = 0;  // iterations whose starts were compared; 0 = too few iterations
    std::size_t last = 0;
    // At least a fifth of the blocks whose fate is known were freed in the iteration that requested
    // them. This is true of a run that repeats itself, and false of one that loads its data piece
    // by piece.
    bool repeats = false;
    // Change of the pool's allocated bytes from the first compared start to the last.
    std::int64_t bytes = 0;
    std::vector<GrowingLine> places;  // most bytes first, at most kMostPlaces
};

// `first_failed`: the first out-of-memory of the device, or kNoEvent. Later starts are not
// compared, unless the earlier ones are too few.
Growth growth_of(const Timeline& timeline,
                 const RunHistory& history,
                 EventIndex first_failed,
                 const RuleFinder& rules,
                 Symbolizer* symbols);

// Recorded peaks before the second iteration starts, and from then on.
struct IterationPeaks {
    bool known = false;
    std::uint64_t warmup_allocated = 0;
    std::uint64_t warmup_reserved = 0;
    std::uint64_t steady_allocated = 0;
    std::uint64_t steady_reserved = 0;
};

IterationPeaks iteration_peaks(const PeakHistory& history, const Iterations& iterations);

}  // namespace fragtrace::analyzer
