// Writes events from the ring into the trace file, with all that is needed to read them.
//
// All functions need the session's flush lock. An event's slot becomes free once its chunk is
// passed to the kernel. If the file cannot be created or written, events wait in the ring as long
// as it has room.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// Returns true if there is a file. After a failure, tries again at intervals and `at_end`.
bool make_file(Session* session, bool at_end);

// Writes all events published so far. Waits up to `unfinished_patience_ns` for a claimed slot that
// is not filled yet, then gives it up. `at_end`: events that cannot be written are lost, and all
// losses are recorded.
void flush(Session* session, uint64_t unfinished_patience_ns, bool at_end);

// For a new part: writes the modules, facts, code and nodes that the file does not have yet.
bool write_tables(Session* session);
// Writes the chunk that says how the recording ended.
bool write_end(Session* session, EndReason reason);

}  // namespace fragtrace::preload
