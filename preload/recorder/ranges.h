// Ranges and marks of the program: phases, NVTX ranges, notebook cells.
//
// Open ranges are kept with their names. They do not start a session, so a process that never uses
// a GPU leaves no file. They are recorded when a session starts, when recording resumes after a
// stop, and in a forked child. Thread-safe, by a lock with a short bounded wait. The table of open
// ranges grows; ranges that it cannot hold are counted.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

// Ranges of one kind and domain are nested per thread. `domain` is the NVTX domain, 0 without one.
void begin_range(RangeKind kind, uint32_t domain, const char* text);
void end_range(RangeKind kind, uint32_t domain);

// Ranges that may end on another thread. A range's number is never 0.
uint64_t start_range(RangeKind kind, const char* text);
void stop_range(RangeKind kind, uint64_t id);

void record_mark(RangeKind kind, const char* text);

// Called when recording begins or resumes: open ranges are recorded before the next event.
void begin_ranges_again();

// Not 0 after begin_ranges_again(), until record_open_ranges() was called.
extern uint32_t g_ranges_to_record;
void record_open_ranges();

// Number of ranges that may lack their begin or end in the trace: the table of open ranges was full
// or locked.
uint64_t ranges_without_room();

// For a forked child: the other threads, and the thread that owned the lock, do not exist there.
void forget_ranges_of_other_threads(uint32_t parent_thread);

}  // namespace fragtrace::preload
