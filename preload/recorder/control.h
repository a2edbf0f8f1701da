// Recording on and off while the process runs: by call, by signal, by environment and by time.
//
// While recording is stopped, events go through the ring as always, but without stacks, and the
// drain tells the live table of them and throws them away. So a start knows what is held then:
// its event sets numbers aside for a checkpoint, which the drain writes behind it. The two events
// that bracket a gap stand among the others, in the ring as in the trace: what lies between them
// is not written, whatever thread it came from. A process that begins stopped has no file, and its
// ring no name, before its first start. A signal only leaves a wish; the drain serves it, because
// a handler may have interrupted anything.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// For a state other than kRunning: may an event that comes now be recorded, or start the session?
bool may_record();

// Whether the session that starts now is to be stopped at first.
bool begins_stopped();

// False when there is nothing to start (switched off, failed) or to stop. Not with the flush lock.
bool start_recording();
bool stop_recording();

// For start_writing(), with the flush lock: the event that ends a gap, for a checkpoint of `held`
// events and of those that wait in the ring. False if that is full.
bool record_start(Session* session, uint64_t held);

// For a session that starts: the signal's handler.
void begin_control(Session* session);

// For the child after a fork, of its parent's session.
void keep_control_in_child(const Session* session);

// By the drain, without its lock: starts when it is time, does what the signals since the last call
// asked for.
void serve_control(Session* session);

}  // namespace fragtrace::preload
