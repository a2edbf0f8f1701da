// Walks the native stack of the calling thread without libunwind, if that is possible exactly.
//
// A walk follows the rules of unwind_rules.h. It only reads memory that is known to be this
// thread's stack, so it may go wrong but never fault. Most of a stack is the same as in the
// previous walk. If a frame's address, stack pointer and frame pointer equal those of a remembered
// frame, the frames further out are compared word by word and reused with their nodes.
#pragma once

#include "stacks/recurring_stacks.h"
#include "system/modules.h"

#include <stdint.h>

namespace fragtrace::preload {

struct ThreadStack;

// Result of a walk. `fresh` frames are in ThreadStack::fresh, innermost first. Their caller is the
// innermost of the `kept` outermost remembered frames.
struct Walk {
    uint32_t fresh;
    uint32_t kept;
    bool whole;     // reaches the outermost frame; otherwise there were more frames than the limit
    uint64_t hash;  // of the fresh frames' addresses, by add_frame_to_hash starting with 0
};

// Maps the memory that walks need. Without it, libunwind walks the stacks.
void start_walks();

// Walks the innermost `limit` frames, without the first ones that are in `own`. Returns false if it
// cannot walk this stack: frames of unusual code, or memory that is not a known stack.
bool walk_stack(
    ThreadStack* stack, const Registers& from, const TextRange& own, uint32_t limit, Walk* walk);

// Returns the node that was remembered for the stack with `from` as its innermost frame, 0 if there
// is none. It serves most of a program's stacks, at a fraction of the cost of a walk.
uint32_t recurring_stack(const ThreadStack& stack, const Registers& from);

// Called after a walk of `frames` frames: remembers its node for the next time.
void remember_recurring_stack(ThreadStack* stack,
                              const Registers& from,
                              const TextRange& own,
                              uint32_t frames,
                              uint32_t node);

// Called after a module was unloaded.
void forget_unloaded_code();

}  // namespace fragtrace::preload
