// Does what has to do with files (flush.h), ten times a second and whenever it is asked to.
//
// One thread of our own, all signals blocked, that may run on the processors of the main thread.
// All file work is this thread's: storage that is slow or hangs, and what that work needs of a
// stack, are no matter of the host. A thread of the host that wants something done asks for it and
// waits at most two seconds (ten for a copy), once: while the drain hangs nobody waits again. What
// is not written then is in the ring, where a reader finds it. Only where no thread could be made
// do the host's threads do it themselves.
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

// At the start: has the file made. Where storage is slow the events wait in the ring for it.
void begin_trace(Session* session);

// Everything published so far into the file, at once. False when that was not done in time.
bool flush_now(Session* session);

// After a stop: sets aside the numbers of a checkpoint, records that recording was started, and
// writes both. False when that could not be done.
bool start_writing(Session* session);

// What the flight recorder holds, as a trace of its own; `why` becomes part of its name.
bool write_copy(Session* session, const char* why);

// Ends the trace: end chunk (the first time), losses, index, trailer. Events may follow: from the
// destructors of other libraries, say. The `last` end removes the ring's file.
void end_trace(Session* session, EndReason reason, bool last);

}  // namespace fragtrace::preload
