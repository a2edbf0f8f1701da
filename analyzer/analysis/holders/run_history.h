// Facts from the whole recording about each stack of a device. How long its blocks live, and how
// many of its bytes are live when an iteration begins. Labels divide the bytes of a stack.
#pragma once

#include "analyzer/analysis/holders/category_rules.h"
#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/analysis/iterations/requests.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Change of live bytes from the start of one iteration to the start of the next.
struct BoundaryChange {
    std::uint32_t iteration = 0;  // the later of the two, from 1
    std::uint32_t labelled = 0;   // of this stack and label: an index of Requests::labelled_stacks
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
    // By index of Requests::labelled_stacks: the user's category, a number of RuleFinder. Filled by
    // add_user_categories().
    std::vector<std::uint16_t> rules = {};
    std::vector<RuleUse> rule_uses = {};  // one per rule of the user
};

// Linear in the number of events. Reads the frames of at most 20,000 stacks.
RunHistory run_history(const Timeline& timeline, DeviceId device, bool blocks, StackMarks* marks);

// Finds the user's category of each stack and label. The rules for stacks are not tried on the
// stacks that were left out.
void add_user_categories(RuleFinder* rules, RunHistory* history);

}  // namespace fragtrace::analyzer
