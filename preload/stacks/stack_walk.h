// Walks the native stack of the calling thread without libunwind, where that can be done exactly.
//
// Steps by the rules of unwind_rules.h, and only within memory that was seen to be this thread's
// stack, so that a walk can go wrong but never fault. Most of a stack is what it was at the walk
// before: where address, stack and frame pointer of a frame are those of a remembered one, the
// frames further out are compared word by word and taken over, with their nodes.
#pragma once

#include "stacks/recurring_stacks.h"
#include "system/modules.h"

#include <stdint.h>

namespace fragtrace::preload {

struct ThreadStack;

// Result of a walk: `fresh` frames lie in ThreadStack::fresh, from the innermost; they are called
// from the outermost `kept` remembered ones.
struct Walk {
    uint32_t fresh;
    uint32_t kept;
    bool whole;     // up to the outermost frame; else there were more frames than asked for
    uint64_t hash;  // of the fresh frames' addresses, by add_frame_to_hash from 0
};

// Maps what walks need; where there are none, stacks are libunwind's.
void start_walks();

// The innermost `limit` frames, those at its beginning that lie in `own` left out. False where this
// stack is not for us: frames of unusual code, memory that is no stack we know.
bool walk_stack(
    ThreadStack* stack, const Registers& from, const TextRange& own, uint32_t limit, Walk* walk);

// The node that was remembered with the stack that `from` is the innermost frame of, 0 if there is
// none: most of a program's stacks, at a fraction of what a walk costs.
uint32_t recurring_stack(const ThreadStack& stack, const Registers& from);

// After a walk from there, to the innermost `frames` frames: its node, for the next time.
void remember_recurring_stack(ThreadStack* stack,
                              const Registers& from,
                              const TextRange& own,
                              uint32_t frames,
                              uint32_t node);

// After a module was unloaded.
void forget_unloaded_code();

}  // namespace fragtrace::preload
