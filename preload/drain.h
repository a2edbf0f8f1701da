// Moves events from the ring into the trace file, with everything that is needed to read them.
//
// One thread of our own, all signals blocked; finish() and a host whose drain could not be created
// do the same under the same lock. A slot is freed after its chunk was handed to the kernel.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

void start_drain(Session* session);
void wake_drain(Session* session);
// Whether as many events wait as the drain writes at once.
bool enough_waits(const Session* session);

// Waits a bounded time for room in a full ring; 0 if there is still none, else a claimed number.
uint64_t claim_when_room(Session* session);

// Everything published so far into the file, at once. False when the lock could not be had.
bool flush_now(Session* session);

// After a stop: sets aside the numbers of a checkpoint, records that recording was started, and
// writes both. False when that could not be done.
bool start_writing(Session* session);

// What the flight recorder holds, as a trace of its own; `why` becomes part of its name.
bool write_copy(Session* session, const char* why);

// For a part that begins: modules, facts, code and nodes, as far as the file lacks them.
bool write_tables(Session* session);
// The chunk that says how the recording ends.
bool write_end(Session* session, EndReason reason);

// Ends the trace: end chunk (the first time), losses, index, trailer. Events may follow: from the
// destructors of other libraries, say. The `last` end removes the ring's file.
void end_trace(Session* session, EndReason reason, bool last);

}  // namespace fragtrace::preload
