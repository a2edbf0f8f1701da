// The last native stack of each thread, remembered in our own memory. Thread-local storage would be
// taken from every thread's stack, and hosts have threads with small stacks.
#pragma once

#include "stacks/recurring_stacks.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <stdint.h>

namespace fragtrace::preload {

// A frame of the last native stack: the registers at its return address, and where the frame was.
struct RememberedFrame {
    uint64_t address;          // return address: the frame's position in its function
    uint64_t frame_pointer;    // rbp at that address
    uint32_t below_top;        // bytes from rsp at that address up to the stack's top
    uint32_t saved_below_top;  // the same for the place of the caller's saved rbp; 0 = it is still
                               // in rbp
    uint32_t node;
};

// Copies field by field: a frame is copied soon after it was written, and a load wider than a
// preceding store would wait for that store to complete.
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
    uint32_t count;  // number of frames; only complete stacks are remembered
    // Memory that is known to be readable: from the lowest stack pointer so far to the outermost
    // frame.
    uint64_t low;
    uint64_t top;
    uint64_t refused_page;       // page of a stack pointer that was in no known stack
    RecurringStacks* recurring;  // nullptr until a stack has occurred twice
    bool recurring_refused;
    RememberedFrame frames[kMaxStackDepth];  // outermost first
    RememberedFrame fresh[kMaxStackDepth];   // of the current walk, innermost first
};

// Maps memory for the threads. Without it, nothing is remembered.
void create_thread_stacks();

// Returns the calling thread's memory; nullptr if live threads use all.
ThreadStack* thread_stack();

// Returns the thread's recurring stacks, which the first call creates; nullptr if live threads use
// all.
RecurringStacks* recurring_stacks(ThreadStack* stack);

// Called when nodes or code have changed.
void forget_stacks(ThreadStack* stack);

// For a forked child: forgets the stacks of the parent's threads.
void forget_thread_stacks();

}  // namespace fragtrace::preload
