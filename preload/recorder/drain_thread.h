// The drain thread does all work on files (flush.h), ten times a second and on request.
//
// It is one thread of the recorder, with all signals blocked. It may run on the processors of the
// main thread. It does all file work, so that slow or hanging storage and the stack space of that
// work do not affect the host program. A host thread that requests work waits for it at most two
// seconds (ten for a copy), and only once: while the drain hangs, nobody waits again. Events that
// are not written then are in the ring, where a reader finds them. While no drain thread can be
// created, the host's threads do the work themselves; they try again once a second.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

void start_drain(Session* session);
void wake_drain(Session* session);
// Returns whether the ring has as many unwritten events as the drain writes at once.
bool enough_waits(const Session* session);

// Waits a bounded time for room in a full ring. Returns a claimed sequence number, 0 if there is
// still no room.
uint64_t claim_when_room(Session* session);

// At the start: asks the drain to create the file. If storage is slow, events wait in the ring.
void begin_trace(Session* session);

// Writes all published events to the file now. Returns false if that did not finish in time.
bool flush_now(Session* session);

// After a stop: reserves the numbers of a checkpoint, records that recording started, and writes
// both. Returns false if that was impossible.
bool start_writing(Session* session);

// Writes the contents of the flight recorder as a separate trace. `why` becomes part of its name.
bool write_copy(Session* session, const char* why);

// Other work on files: calls the function on the drain thread. Returns its result, and false if it
// did not return in time; the drain may still be in it.
bool call_on_drain(Session* session, bool (*call)());

// Ends the trace: end chunk (the first time), losses, index, trailer. Events may still follow, for
// example from destructors of other libraries. The `last` end removes the ring's file.
void end_trace(Session* session, EndReason reason, bool last);

}  // namespace fragtrace::preload
