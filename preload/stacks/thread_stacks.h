// What is remembered of each thread's last native stack, in memory of ours rather than in
// thread-local storage: that is taken from every thread's stack, and hosts have threads with small
// ones.
#pragma once

#include "stacks/recurring_stacks.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// A frame of the last native stack: the registers as they were at its return address, and where it
// was found.
struct RememberedFrame {
    uint64_t address;          // return address: the place in the function that the frame is at
    uint64_t frame_pointer;    // rbp there
    uint32_t below_top;        // bytes from rsp there up to the stack's top
    uint32_t saved_below_top;  // the same of where the caller's rbp lies; 0 = it is in rbp still
    uint32_t node;
};

// Field by field: a frame is copied soon after it was written, and loads of more than was stored at
// once would wait for the stores.
inline void copy_frame(RememberedFrame* to, const RememberedFrame& from) {
    store_relaxed(&to->address, from.address);
    store_relaxed(&to->frame_pointer, from.frame_pointer);
    store_relaxed(&to->below_top, from.below_top);
    store_relaxed(&to->saved_below_top, from.saved_below_top);
    store_relaxed(&to->node, from.node);
}

struct ThreadStack {
    uint32_t owner;  // thread id, 0 = free
    uint32_t session_generation;
    uint32_t rules_generation;
    uint32_t count;  // of frames; only whole stacks are remembered
    // Memory that was seen to be readable, from the stack pointer at the deepest place so far to
    // the outermost frame.
    uint64_t low;
    uint64_t top;
    uint64_t refused_page;       // where a stack pointer was that is of no stack that we know
    RecurringStacks* recurring;  // nullptr until a stack has come twice
    bool recurring_refused;
    RememberedFrame frames[kMaxStackDepth];  // outermost first
    RememberedFrame fresh[kMaxStackDepth];   // of the stack being walked, innermost first
};

// Maps room for threads; without memory there is none and nothing is remembered.
void create_thread_stacks();

// The calling thread's; nullptr when all are taken by threads that live.
ThreadStack* thread_stack();

// The thread's, from the first call on; nullptr when all are taken by threads that live.
RecurringStacks* recurring_stacks(ThreadStack* stack);

// Where nodes or code have changed.
void forget_stacks(ThreadStack* stack);

// For a forked child.
void forget_thread_stacks();

}  // namespace fragtrace::preload
