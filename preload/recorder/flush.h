// From the ring into the trace file: events, with everything that is needed to read them.
//
// All of it with the session's flush lock. An event's slot is freed after its chunk was handed to
// the kernel. Where the file cannot be made or written, events wait in the ring while it has room.
#pragma once

#include <fragtrace/format.h>

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

// True once there is a file. After a failure it is tried again, at intervals, and `at_end`.
bool make_file(Session* session, bool at_end);

// Everything published so far. A slot that was claimed is waited for so long before it is given up.
// `at_end`: what cannot be written is lost, and all losses are told.
void flush(Session* session, uint64_t unfinished_patience_ns, bool at_end);

// For a part that begins: modules, facts, code and nodes, as far as the file lacks them.
bool write_tables(Session* session);
// The chunk that says how the recording ends.
bool write_end(Session* session, EndReason reason);

}  // namespace fragtrace::preload
