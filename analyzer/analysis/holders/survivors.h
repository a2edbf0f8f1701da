// What is still held although what it was made for is over: an out-of-memory that the program
// caught, a model that another one took the place of, an earlier run of the same phase (a cell that
// is run again, an epoch). Plain data; docs/metrics.md, What survives.
#pragma once

#include "analyzer/analysis/holders/holders.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Survivors {
    enum class Of : std::uint8_t { kOutOfMemory, kModel, kPhase };

    Of of = Of::kOutOfMemory;
    // The out-of-memory; the first request for the next model; the end of the earlier run.
    EventIndex event = kNoEvent;
    std::size_t iteration = 0;  // of `event`; 0 = in none
    std::string phase = {};     // kPhase, and of an out-of-memory outside of iterations; else empty
    EventIndex until = 0;       // they were still held here
    std::uint64_t bytes = 0;
    std::vector<HoldingPlace> places = {};
};

// In the order of events, each kind for itself: out-of-memories (`failed`, ascending; the first 16
// are looked at), models, phases. Only such as anything outlived.
std::vector<Survivors> survivors_of(const Timeline& timeline,
                                    const std::vector<EventIndex>& failed,
                                    const RunHistory& history,
                                    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
