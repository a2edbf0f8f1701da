// Recording on and off while the process runs: by call, by signal, by environment and by time.
//
// The state of the session says all: while it is stopped or waits for its start, hooks pass calls
// on after one load. Two events bracket the gap in the trace. A signal only leaves a wish; the
// drain serves it, because a handler may have interrupted anything.
#pragma once

namespace fragtrace::preload {

struct Session;

// For a state other than kRunning: may an event that comes now be recorded, or start the session?
// Lets the session wait where the environment says so.
bool may_record();

// True while recording is stopped, or waits for its start: what is not recorded is not lost.
bool silent_on_purpose();

// False when there is nothing to start (switched off, failed) or to stop.
bool start_recording();
bool stop_recording();

// For a session that starts: its first event when it starts in mid-life, and the signal's handler.
void begin_control(Session* session);

// By the drain, without its lock: does what the signals since the last call asked for.
void serve_control_signal(Session* session);

}  // namespace fragtrace::preload
