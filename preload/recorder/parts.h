// A recording in parts: bounded on disk, however long the process runs, and a flight recorder.
//
// The trace is written as NAME.PID.part1.ftrace, .part2 ... When a part is full the next one begins
// with a checkpoint (everything that is held, out of the live table), so that each part is a trace
// by itself, and the part before the last one is removed. A copy is two parts joined: what a flight
// recorder leaves at an out-of-memory, on request, and at the end. All functions but start_parts()
// need the session's flush lock.
#pragma once

#include <fragtrace/format.h>

#include "recorder/live_table.h"

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

struct Parts {
    LiveTable live;
    uint32_t number;            // of the part that is written, from 1; 0 = no parts
    uint64_t before_bytes;      // chunks of the part before, without its end; 0 = there is none
    uint64_t checkpoint_begin;  // of the part that is written: bytes in the file
    uint64_t checkpoint_end;
    uint64_t largest_chunk_bytes;
    uint64_t not_before_bytes;  // after a failure: try again when the part has grown to this
    bool out_of_memory;         // seen, and not copied yet
    uint32_t copies;
    uint32_t copies_by_itself;
    uint64_t last_copy_ns;
};

// False without memory.
bool start_parts(Session* session);

// Tells the live table of events that are about to leave the ring, up to and with the first one
// that switches recording on or off. Gives how many these are.
uint32_t follow_events(Session* session, uint64_t first, uint32_t count);

// For a file that begins: it has no tables yet.
void forget_what_is_written(Session* session);

// What is held, between a checkpoint's begin and end.
bool write_checkpoint(Session* session);

// After a chunk of events: begins the next part if this one is full.
void limit_part(Session* session, uint64_t chunk_bytes);

// False where another chunk would pass the limit.
bool may_grow(const Session* session);

// The same, after the part before was removed where that is needed: the newest events stay.
bool make_room(Session* session);

// After all that waited is written: a copy, if memory ran out and the last copy is long enough ago.
void copy_after_out_of_memory(Session* session);

// The last parts as one file, NAME.PID.WHYn.ftrace.
bool copy_parts(Session* session, const char* why);

// After the end was written: a flight recorder's parts become one file, an only part gets the name
// of a trace without parts.
void join_parts_at_end(Session* session);

}  // namespace fragtrace::preload
