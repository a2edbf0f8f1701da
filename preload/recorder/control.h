// Starts and stops recording while the process runs: by call, by signal, by environment variable
// and by time.
//
// While recording is stopped, events still go through the ring, but without stacks. The drain
// updates the live table with them and discards them. So a start knows all live allocations: its
// event reserves sequence numbers for a checkpoint, which the drain writes directly after it.
//
// The stop and start events stand among the other events, in the ring and in the trace. Events
// between the two are not written, whatever their thread. A process that begins stopped has no
// trace file, and its ring has no name, before the first start. A signal handler only records the
// request, because it may have interrupted anything; the drain serves the request.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// For states other than kRunning: returns whether an event may be recorded now, or start the
// session.
bool may_record();

// Returns whether the session that starts now is stopped at first.
bool begins_stopped();

// Return false if there is nothing to start (switched off, failed) or to stop. The caller must not
// own the flush lock.
bool start_recording();
bool stop_recording();

// For start_writing(), with the flush lock: records the event that ends a gap. The event reserves
// numbers for a checkpoint of `held` events and of the events that wait in the ring. Returns false
// if the ring is full.
bool record_start(Session* session, uint64_t held);

// Installs the signal handler, for a session that starts.
void begin_control(Session* session);

// For the child after a fork: keeps the control state of its parent's session.
void keep_control_in_child(const Session* session);

// Called by the drain without the flush lock: starts recording when it is time, and serves the
// signals since the last call.
void serve_control(Session* session);

}  // namespace fragtrace::preload
