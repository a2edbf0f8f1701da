// Ranges that the program marks (phases, NVTX ranges, cells of a notebook) and marks.
//
// The ones that are open are kept, with their names: they do not start a session - a process that
// never touches a GPU leaves no file - and are recorded when one starts, when recording goes on
// after a stop, and in a forked child. Thread-safe by a lock that is waited for only briefly.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

// Ranges of one kind and domain are nested per thread. `domain` is NVTX's, 0 without one.
void begin_range(RangeKind kind, uint32_t domain, const char* text);
void end_range(RangeKind kind, uint32_t domain);

// Ranges that may end on another thread, by their number; it is never 0.
uint64_t start_range(RangeKind kind, const char* text);
void stop_range(RangeKind kind, uint64_t id);

void record_mark(RangeKind kind, const char* text);

// Recording begins, or goes on: what is open is recorded before the next event.
void begin_ranges_again();

// Not 0 after begin_ranges_again(), until record_open_ranges() was called.
extern uint32_t g_ranges_to_record;
void record_open_ranges();

// For a forked child: its other threads, and the holder of the lock, are gone.
void forget_ranges_of_other_threads(uint32_t parent_thread);

}  // namespace fragtrace::preload
