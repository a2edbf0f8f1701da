// Facts from the whole recording about each stack of a device. How long its blocks live, and how
// many of its bytes are live when an iteration begins.
#pragma once

#include "analyzer/analysis/holders/categories.h"
#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/analysis/iterations/requests.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Change of a stack's live bytes from the start of one iteration to the start of the next.
struct BoundaryChange {
    std::uint32_t iteration = 0;  // the later of the two, from 1
    std::uint32_t stack = 0;
    std::int64_t bytes = 0;
};

// A sequence of requests of one kind: a backward pass, an optimizer's step, or the requests in
// between.
struct Pass {
    EventIndex begin = 0;
    std::uint16_t marks = 0;  // kMarkOptimizer, kMarkBackward; 0 = neither
};

struct RunHistory {
    Requests requests;
    Iterations iterations;
    std::vector<StackHistory> stacks;     // indexed by the numbers in Requests::stacks
    std::vector<BoundaryChange> changes;  // ascending by iteration
    std::vector<Pass> passes;             // ascending
    // Stacks beyond the limit: their frames were not read, so they have no marks.
    std::uint64_t stacks_left_out = 0;
};

// Linear in the number of events. Reads the frames of at most 20,000 stacks.
RunHistory run_history(const Timeline& timeline, DeviceId device, bool blocks, StackMarks* marks);

}  // namespace fragtrace::analyzer
