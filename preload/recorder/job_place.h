// The place of this process in its job: host, rank, world size, restarts. Read when a session
// starts.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

inline constexpr uint32_t kMostAncestors = 16;

// A process of this host.
struct Ancestor {
    int32_t pid;
    uint64_t start_ticks;
};

// Numbers are -1 if they are unknown.
struct JobPlace {
    int32_t rank;  // -1 also for a helper process
    int32_t local_rank;
    int32_t world_size;
    int32_t generation;         // restarts of the job before this start
    const char* rank_variable;  // source of the rank, or of the inherited one; nullptr = none
    // A helper process of a rank, such as a worker of a data loader, has the rank's environment.
    // An ancestor is recorded with this rank, so the rank belongs to the ancestor.
    int32_t inherited_rank;
    int32_t rank_process;  // that ancestor
    uint32_t ancestor_count;
    Ancestor ancestors[kMostAncestors];  // the parent first
};

// Reads the environment and /proc. Uses static memory: only one session starts at a time.
void find_job_place(JobPlace* place);

// Adds the facts of session->place.
void add_job_facts(Session* session);

// Adds the fact of the largest communicator so far, for a session that has just started.
void add_communicator_fact(Session* session);

// NCCL made a communicator of `size` processes, in which this process has this rank. The largest
// one of the process becomes a fact.
void note_communicator(int32_t size, int32_t rank);

// For a forked child: the thread that owned the lock does not exist there.
void reset_communicator_lock();

// Returns the start of a process in hundredths of a second since the system started, and its parent
// if `parent` is not nullptr; 0 if they cannot be read. `pid` 0 = this process.
uint64_t process_start_ticks(int32_t pid, int32_t* parent);

}  // namespace fragtrace::preload
