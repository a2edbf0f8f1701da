// One recording: its file, ring, stack tree and drain, and the state machine that starts it.
//
// A single static object without constructor or destructor, so it is usable before the host's first
// static constructor and after its last destructor. The first event starts it. Threads that arrive
// meanwhile wait (bounded) instead of losing their events. A forked child drops the parent's
// mappings and starts its own session.
#pragma once

#include <fragtrace/format.h>

#include "recorder/job_place.h"
#include "recorder/options.h"
#include "recorder/parts.h"
#include "recorder/ring.h"
#include "recorder/stack_table.h"
#include "recorder/trace_file.h"
#include "system/modules.h"
#include "system/sys.h"

namespace fragtrace::preload {

enum SessionState : uint32_t {
    kIdle = 0,
    kStarting = 1,
    kRunning = 2,
    kOff = 3,  // failed, or a forked child that stays off
};

// Values of Session::finished, about the end of the trace.
inline constexpr uint32_t kFinished = 1;      // the end is written; the last handler of exit() will
                                              // still run
inline constexpr uint32_t kFinishedLast = 2;  // the last handler has run: a thread that records an
                                              // event also writes it

// A request from a host thread to the drain; see drain_thread.h.
struct DrainTask {
    enum Kind : uint8_t { kBegin, kFlush, kStart, kCopy, kEnd, kCall };

    // All defaults are zero, so that the session is in memory that the loader need not fill.
    Kind kind{};
    EndReason reason{};  // for kEnd
    bool last{};         // for kEnd
    char why[16]{};      // for kCopy
    bool (*call)(){};    // for kCall
};

struct alignas(64) Session {
    static constexpr uint32_t kLossKinds = 19;

    // Fields that every event reads are next to each other.
    uint32_t state;     // SessionState; a futex
    uint32_t finished;  // 0, kFinished or kFinishedLast
    uint32_t stopped;   // 1: events are followed but not written, and have no stacks; see control.h
    bool filters;       // some events are not recorded: options.min_block_bytes
    bool stacks_wanted;
    // Points into a page that the kernel clears in every forked child, even in one made without
    // fork().
    const uint32_t* parent_token;
    uint64_t start_monotonic_ns;
    Ring ring;

    uint32_t generation;
    int pid;
    bool forked;

    Options options;
    TraceFile file;
    TraceHeader header;  // of the file, as written
    JobPlace place;
    StackTable stacks;
    uint64_t id[2];
    TextRange own_text;

    // Drain. All but the words that threads sleep on belongs to the owner of flush_lock.
    Lock flush_lock;
    bool drain_runs;       // it may start late; see has_drain()
    bool ended;            // an end chunk was written
    uint32_t drain_wakes;  // a futex: counts requests to drain
    uint32_t room_made;    // a futex: counts advances of the tail
    uint32_t room_waiters;
    uint64_t room_made_ns;    // CLOCK_MONOTONIC, of the last advance
    uint64_t waiting_ns;      // CLOCK_MONOTONIC, start of the current wait for room
    uint64_t waited_ns;       // total time in which at least one thread waited for room
    uint32_t gave_up_at;      // value of room_made + 1 at which a wait for room failed
    uint64_t drain_tried_ns;  // CLOCK_MONOTONIC of the last attempt to start the drain
    uint32_t followed_count;  // events after the tail that update_live_table() has seen
    Parts parts;

    // Used by one host thread at a time: it owns ask_lock and waits for `served`, a futex.
    Lock ask_lock;
    DrainTask task;
    uint32_t asked;
    uint32_t served;
    bool task_done;    // result of the last task that was served
    bool drain_hangs;  // a task was not served in time
    ModuleVersion modules_written;
    uint32_t stored_facts_copied;  // bytes; protected by the lock of the facts

    uint32_t control_signals_served;  // signals that were served, of all that arrived; see
                                      // control.h
    bool wants_file;                  // recording began with the session, or its file was removed
    bool has_file;                    // the file was created
    bool replaces_file;               // creating a file in place of one that somebody removed
    bool writes;             // whether events are written, at the position in the events that the
                             // drain has reached
    uint64_t file_tried_ns;  // CLOCK_MONOTONIC of the last failure to create it; 0 = no failure
    uint64_t file_pause_ns;  // pause after that failure

    uint64_t lost_unfinished;
    uint64_t lost_write_failed;
    uint64_t lost_removed;            // events in a trace that somebody removed or cut
    uint64_t threads_without_python;  // threads that recorded events but have no Python frames
    uint64_t lost_before_start;       // events lost because the start took too long or failed
    uint64_t losses_told[kLossKinds];
    char failure[512];  // reason why there is no recording
};

extern Session g_session;

// Returns the session if there is one, stopped or not.
inline Session* running_session() {
    return load_acquire(&g_session.state) == kRunning && *g_session.parent_token != 0 ? &g_session
                                                                                      : nullptr;
}

// Like running_session(). If another thread is starting the session, waits for it a bounded time.
Session* session_once_started();

// Returns the session and starts it if needed; nullptr if that is impossible.
Session* session_for_event();

// Creates the file with its header. Needs the flush lock. Returns false on failure;
// session->failure then has the reason.
bool begin_file(Session* session);

// Writes the header of the current file. `part` as in TraceHeader.
bool write_trace_header(Session* session, uint32_t part);

// For the child after a fork: forgets the parent's session.
void forget_session_of_parent();

inline constexpr uint32_t kNameCapacity = 256;

// Writes the beginning of the trace's name, PROGRAM.HOST or PROGRAM.HOST.rankN. PROGRAM is the
// script's name for an interpreter, otherwise the program's name. It is safe as a file name.
void trace_name(const Session& session, char name[kNameCapacity]);

// Replaces the patterns in options.output (output_pattern.h). Returns false if the result is too
// long.
bool expand_output(Session* session);

}  // namespace fragtrace::preload
