// Memory that is still live although its purpose has ended. Three cases: after an out-of-memory
// that the program caught; after a model that another model replaced; after an earlier run of the
// same phase (a cell that runs again, an epoch). Plain data; docs/metrics.md, What survives.
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
    // kOutOfMemory: the failure. kModel: the first request for the next model. kPhase: the end of
    // the earlier run.
    EventIndex event = kNoEvent;
    std::size_t iteration = 0;  // the iteration of `event`; 0 = none
    // kPhase: its name. kOutOfMemory outside of iterations: the phase around it. Else empty.
    std::string phase = {};
    EventIndex until = 0;  // the memory was still live at this event
    std::uint64_t bytes = 0;
    // Memory of the pool that could be returned to the driver just before that event. Only of the
    // first kOutOfMemory, by find_holders(); 0 = none, or not known.
    std::uint64_t cached_bytes = 0;
    std::vector<HoldingLine> places = {};
};

// First out-of-memories (the first 16 of `failed`, which ascends), then models, then phases. Phases
// are sorted by bytes, the others by event. Cases without surviving memory are left out.
std::vector<Survivors> survivors_of(const Timeline& timeline,
                                    const std::vector<EventIndex>& failed,
                                    const RunHistory& history,
                                    const RuleFinder& rules,
                                    Symbolizer* symbols);

}  // namespace fragtrace::analyzer
