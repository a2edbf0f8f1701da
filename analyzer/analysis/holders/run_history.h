// What the whole record says of each stack of a device: how long its blocks live, and what of them
// is live when an iteration begins.
#pragma once

#include "analyzer/analysis/holders/categories.h"
#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/analysis/iterations/requests.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Bytes of a stack that an iteration's begin finds more (or less) than the one before.
struct BoundaryChange {
    std::uint32_t iteration = 0;  // whose begin, from 1
    std::uint32_t stack = 0;
    std::int64_t bytes = 0;
};

// A stretch of requests of one kind: a backward pass, an optimizer's step, what lies between.
struct Pass {
    EventIndex begin = 0;
    std::uint16_t marks = 0;  // kMarkOptimizer, kMarkBackward; 0 = neither
};

struct RunHistory {
    Requests requests;
    Iterations iterations;
    std::vector<StackHistory> stacks;     // by Requests::stacks
    std::vector<BoundaryChange> changes;  // ascending by iteration
    std::vector<Pass> passes;             // ascending
    std::uint64_t stacks_left_out = 0;    // beyond the number that are looked at: no marks
};

// Linear in the events; the frames of at most 20,000 stacks are looked at.
RunHistory run_history(const Timeline& timeline, DeviceId device, bool blocks, StackMarks* marks);

}  // namespace fragtrace::analyzer
