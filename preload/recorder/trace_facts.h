// Facts: "key = value" about the process, kept in a fixed store until a session exists, then in
// the ring, from where the drain copies them into the trace.
//
// Thread-safe by a lock that is waited for only briefly; facts are rare.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

inline constexpr uint32_t kMaxFactValue_bytes = 4096;

// Adds a fact to the store (which a forked child hands on to its own session) and, if a session
// runs, to its ring. False when there was no room; that is counted as well.
bool store_fact(const char* key, const char* value);

// Adds a fact about this session alone.
bool add_session_fact(Session* session, const char* key, const char* value);

// Copies what was stored before the session.
void add_stored_facts(Session* session);

// Command line, executable, folder, host, settings: what is known at the start.
void add_start_facts(Session* session);

// Losses counted so far, those that changed since they were last written; unless `exact`, those
// that more than doubled.
void add_loss_facts(Session* session, bool exact);

uint64_t lost_facts();

// For a forked child: the holder of the lock is gone.
void reset_facts_lock();

}  // namespace fragtrace::preload
