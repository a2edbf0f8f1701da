// Facts: "key = value" about the process. They are kept in a fixed store until a session exists,
// then in the ring, from where the drain copies them to the trace.
//
// Thread-safe, by a lock with a short bounded wait; facts are rare.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

struct Session;

inline constexpr uint32_t kMaxFactValue_bytes = 4096;

// Adds a fact to the store, which a forked child passes on to its own session. If a session runs,
// also adds it to the session's ring. Returns false if there was no room, and counts that.
bool store_fact(const char* key, const char* value);

// Adds a fact about this session only.
bool add_session_fact(Session* session, const char* key, const char* value);

// Copies the facts that were stored before the session.
void add_stored_facts(Session* session);

// Adds the facts known at the start: command line, executable, folder, host, settings.
void add_start_facts(Session* session);

// Adds the counters of losses that changed since they were last written. Unless `exact`: only those
// that more than doubled.
void add_loss_facts(Session* session, bool exact);

uint64_t lost_facts();

// NCCL's stand-in counts results that it replaced by zeros: size of the largest result that has
// contents, number and bytes of the larger ones. They become facts like the losses. The counters
// stay valid until the process ends.
void watch_zeros(const uint64_t counts[3]);

// For a forked child: the thread that owned the lock does not exist there.
void reset_facts_lock();

}  // namespace fragtrace::preload
