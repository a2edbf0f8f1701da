// A recording in parts: bounded on disk however long the process runs, and a flight recorder.
//
// The trace is written as NAME.PID.part1.ftrace, .part2 and so on. When a part is full, the next
// one begins with a checkpoint (all live allocations, from the live table), so that each part is a
// complete trace. The part before the last one is then removed. A copy is two parts joined. A
// flight recorder writes one at an out-of-memory, on request and at the end. All functions except
// start_parts() need the session's flush lock.
#pragma once

#include <fragtrace/format.h>

#include "live/live_table.h"

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

struct Parts {
    LiveTable live;
    uint32_t number;            // of the part that is being written, from 1; 0 = no parts
    uint64_t before_bytes;      // size of the previous part's chunks without its end; 0 = no
                                // previous part
    uint64_t checkpoint_begin;  // in the part that is being written: offset in the file
    uint64_t checkpoint_end;
    uint64_t largest_chunk_bytes;
    uint64_t not_before_bytes;  // after a failure: try again when the part has reached this size
    bool out_of_memory;         // an out-of-memory was seen and not copied yet
    uint32_t copies;
    uint32_t copies_by_itself;
    uint64_t last_copy_ns;
    int copy_error;  // errno of the last copy that could not be written; 0 = none
};

// Returns false without memory.
bool start_parts(Session* session);

// Updates the live table with events that are about to leave the ring, up to and including the
// first one that switches recording on or off. Returns the number of these events.
uint32_t update_live_table(Session* session, uint64_t first, uint32_t count);

// For a new file: no tables are written yet.
void forget_what_is_written(Session* session);

// Writes all live allocations, between checkpoint_begin and checkpoint_end.
bool write_checkpoint(Session* session);

// Called after a chunk of events: begins the next part if this one is full.
void limit_part(Session* session, uint64_t chunk_bytes);

// Returns false if another chunk would exceed the limit.
bool may_grow(const Session* session);

// Like may_grow(), but first removes the previous part if needed: the newest events stay.
bool make_room(Session* session);

// Called when all waiting events are written: makes a copy if memory ran out and the last copy is
// old enough.
void copy_after_out_of_memory(Session* session);

// Joins the last parts in one file, NAME.PID.WHYn.ftrace.
bool copy_parts(Session* session, const char* why);

// Called after the end was written. A flight recorder's parts become one file; a single part gets
// the name of a trace without parts.
void join_parts_at_end(Session* session);

}  // namespace fragtrace::preload
