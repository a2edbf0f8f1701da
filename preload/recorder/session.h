// One recording: its file, ring, stack tree and drain, and the state machine that starts it.
//
// A single static object without constructor or destructor: usable before the first and after the
// last static of the host. Starts at the first event; threads that come meanwhile wait (bounded)
// rather than lose their events. A forked child gives the parent's mappings up and starts its own.
#pragma once

#include <fragtrace/format.h>

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

// What Session::finished says of the trace's end.
inline constexpr uint32_t kFinished = 1;      // it is written; the last handler of exit() comes yet
inline constexpr uint32_t kFinishedLast = 2;  // whoever records writes it, too

// What a thread of the host asks of the drain; see drain.h.
struct DrainTask {
    enum Kind : uint8_t { kBegin, kFlush, kStart, kCopy, kEnd };

    // Zeros: the session lies in memory that the loader need not fill.
    Kind kind{};
    EndReason reason{};  // of kEnd
    bool last{};         // of kEnd
    char why[16]{};      // of kCopy
};

struct alignas(64) Session {
    static constexpr uint32_t kLossKinds = 14;

    // What every event reads lies together.
    uint32_t state;     // SessionState; a futex
    uint32_t finished;  // 0, kFinished or kFinishedLast
    uint32_t stopped;   // 1: events are followed but not written, and have no stacks; see control.h
    bool filters;       // some events are not recorded: options.min_block_bytes
    bool stacks_wanted;
    // In a page that the kernel clears in every forked child, also one made without fork().
    const uint32_t* parent_token;
    uint64_t start_monotonic_ns;
    Ring ring;

    uint32_t generation;
    int pid;
    bool forked;

    Options options;
    TraceFile file;
    TraceHeader header;  // of the file, as written
    StackTable stacks;
    uint64_t id[2];
    TextRange own_text;

    // Drain. Everything but the words that threads sleep on belongs to the holder of flush_lock.
    Lock flush_lock;
    bool drain_runs;
    bool ended;            // an end chunk was written
    uint32_t drain_wakes;  // a futex: counts wishes to drain
    uint32_t room_made;    // a futex: counts advances of the tail
    uint32_t room_waiters;
    uint64_t room_made_ns;    // CLOCK_MONOTONIC, of the last advance
    uint64_t waiting_ns;      // CLOCK_MONOTONIC, since when somebody waits for room
    uint64_t waited_ns;       // for room, while anybody did
    uint32_t gave_up_at;      // value of room_made, plus 1, at which somebody waited in vain
    uint32_t followed_count;  // events behind the tail that follow_events() has seen
    Parts parts;

    // Of one thread of the host at a time, who holds ask_lock and waits for `served`, a futex.
    Lock ask_lock;
    DrainTask task;
    uint32_t asked;
    uint32_t served;
    bool task_done;    // how the one that was served went
    bool drain_hangs;  // one was not served in time
    ModuleVersion modules_written;
    uint32_t stored_facts_copied;  // bytes; with the lock of the facts

    uint32_t control_signals_served;  // of those that came; see control.h
    bool wants_file;         // recording began with the session, or had a file that is gone
    bool has_file;           // it could be made
    bool replaces_file;      // which somebody has removed
    bool writes;             // in the order of events, as far as the drain has come
    uint64_t file_tried_ns;  // CLOCK_MONOTONIC, when making it failed last; 0 = it did not
    uint64_t file_pause_ns;  // after that

    uint64_t lost_unfinished;
    uint64_t lost_write_failed;
    uint64_t lost_removed;            // were in a trace that somebody removed or cut
    uint64_t threads_without_python;  // recorded events, and have no Python frames
    uint64_t lost_before_start;       // refused: the start took too long, or failed
    uint64_t losses_told[kLossKinds];
    char failure[512];  // why there is no recording
};

extern Session g_session;

// The session if there is one, stopped or not.
inline Session* running_session() {
    return load_acquire(&g_session.state) == kRunning && *g_session.parent_token != 0 ? &g_session
                                                                                      : nullptr;
}

// The same; while another thread starts it, that is waited for, a bounded time.
Session* session_once_started();

// The session, started if need be; nullptr when there is none to be had.
Session* session_for_event();

// Makes the file, with its header. With the flush lock. False if it cannot be; session->failure
// then says why.
bool begin_file(Session* session);

// The header of the file that is about to be written; `part` as in TraceHeader.
bool write_trace_header(Session* session, uint32_t part);

// For the child after a fork: forgets the parent's session.
void forget_session_of_parent();

// When this process began, in hundredths of a second since the system's start.
uint64_t process_start_ticks();

// Name of the trace: the script's for an interpreter, else the program's. Safe as a file name.
void program_name(char* name, uint32_t capacity);

}  // namespace fragtrace::preload
