// Groups of NCCL's calls: ncclGroupEnd waits for all new communicators of a group together, and
// issues all works of a group together.
#pragma once

#include "libraries/nccl_communicator.h"

#include <cstdint>

namespace fragtrace::vgpu {

// The colour of a rank that joins no new communicator.
constexpr int kNoColour = -1;

// A communicator that waits for its ranks: ncclCommInitRank*, ncclCommSplit and ncclCommShrink. In
// a group, ncclGroupEnd waits for all of them together.
struct Forming {
    Communicator** out;
    Communicator* made;    // null: the split is not agreed on yet
    Communicator* parent;  // only splits
    uint64_t agreement;
    int colour;
    Process maker;  // of the unique id; 0 without one
    Forming* next;
};

struct Group {
    int depth;
    Forming* forming;
    Work* first;  // calls of the group
    Work* last;
    int error;  // the first one of a call
};

// The group of this thread.
extern __thread Group t_group;

// Waits for a communicator, or leaves this to the end of the group. Called without the lock.
int form(Forming forming);

// Waits for a list of communicators, and frees the list.
int form_all(Forming* first);

}  // namespace fragtrace::vgpu
