#include "recorder/drain_thread.h"

#include "recorder/control.h"
#include "recorder/flush.h"
#include "recorder/session.h"
#include "recorder/stack_python.h"
#include "system/clock.h"
#include "system/own_thread.h"
#include "system/thread_state.h"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kDrainInterval_ns = 100 * kMillisecond_ns;
// Small batches compress badly. The events of a quiet program can wait in the ring, where they are
// safe.
constexpr uint64_t kQuietInterval_ns = kSecond_ns;
// Host threads wait for room while the drain makes progress. A drain that frees no slot for this
// long hangs on its disk. A drain that is only scheduled late must not cost events.
constexpr uint64_t kRoomPatience_ns = 200 * kMillisecond_ns;
// All waits together are limited to this allowance plus 1/kWaitShare of the time since the start.
// Simultaneous waits of several threads count once.
constexpr uint64_t kWaitAllowance_ns = 2 * kSecond_ns;
constexpr uint64_t kWaitShare = 25;
// After this time, a claimed slot that is not filled is given up: its thread died inside record().
constexpr uint64_t kUnfinishedPatience_ns = 5 * kSecond_ns;
constexpr uint64_t kUnfinishedPatienceAtEnd_ns = 100 * kMillisecond_ns;
constexpr int kTriesToStart = 10;
constexpr uint64_t kFlushLockPatience_ns = 2 * kSecond_ns;
constexpr uint64_t kTaskPatience_ns = 2 * kSecond_ns;
constexpr uint64_t kCopyPatience_ns = 10 * kSecond_ns;  // it copies two parts of a flight recorder
// The first event waits this long for its file. That suffices for the file to exist before the
// program can be killed.
constexpr uint64_t kBeginPatience_ns = 200 * kMillisecond_ns;

bool worth_flushing(const Session* session, uint64_t last_flush_ns) {
    const RingHeader* header = session->ring.header;
    return enough_waits(session) || load_relaxed(&session->room_waiters) != 0 ||
           (session->has_file &&
            load_acquire(&header->facts_bytes) != header->facts_bytes_written) ||
           clock_ns(CLOCK_MONOTONIC) - last_flush_ns >= kQuietInterval_ns;
}

bool write_now(Session* session) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    flush(session, kUnfinishedPatienceAtEnd_ns, true);
    session->flush_lock.unlock();
    return session->has_file;
}

bool resume(Session* session) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    bool marked = false;
    for (int i = 0; i < kTriesToStart && !marked; ++i) {
        flush(session, kUnfinishedPatienceAtEnd_ns, false);  // also makes room
        marked = record_start(session, session->parts.live.event_count());
    }
    if (marked) {
        flush(session, kUnfinishedPatienceAtEnd_ns, false);
    }
    session->flush_lock.unlock();
    return marked && session->has_file;
}

bool copy_now(Session* session, const char* why) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    flush(session, kUnfinishedPatienceAtEnd_ns, true);
    const SignalTakenBack no_signal(SIGXFSZ);
    const bool written = session->has_file && copy_parts(session, why);
    session->flush_lock.unlock();
    return written;
}

bool end_now(Session* session, EndReason reason, bool last) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    flush(session, kUnfinishedPatienceAtEnd_ns, true);
    const SignalTakenBack no_signal(SIGXFSZ);
    if (session->has_file) {
        if (!session->ended) {
            session->ended = write_end(session, reason);
        }
        session->file.write_index();
        join_parts_at_end(session);
    }
    if (last) {
        session->ring.remove_file();
    }
    session->flush_lock.unlock();
    return session->has_file;
}

bool begin_now(Session* session) {
    if (session->wants_file && session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        const SignalTakenBack no_signal(SIGXFSZ);
        session->writes = make_file(session, false);
        session->flush_lock.unlock();
    }
    return session->has_file;
}

bool perform(Session* session, const DrainTask& task) {
    switch (task.kind) {
        case DrainTask::kBegin:
            return begin_now(session);
        case DrainTask::kFlush:
            return write_now(session);
        case DrainTask::kStart:
            return resume(session);
        case DrainTask::kCopy:
            return copy_now(session, task.why);
        case DrainTask::kEnd:
            return end_now(session, task.reason, task.last);
        case DrainTask::kCall:
            return task.call();
    }
    return false;
}

// Runs on the drain thread.
void serve_tasks(Session* session) {
    const uint32_t asked = load_acquire(&session->asked);
    if (asked == session->served) {
        return;
    }
    const DrainTask task = session->task;
    session->task_done = perform(session, task);
    store_release(&session->served, asked);
    futex_wake_all(&session->served);
}

bool wait_until_served(const Session* session, uint64_t until_ns) {
    for (;;) {
        const uint32_t served = load_acquire(&session->served);
        if (served == load_relaxed(&session->asked)) {
            return true;
        }
        const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if (now_ns >= until_ns) {
            return false;
        }
        futex_wait(&session->served, served, until_ns - now_ns);
    }
}

// Returns whether there is a drain. The host may have been allowed no thread at the start, so this
// tries again, once a second.
bool has_drain(Session* session) {
    constexpr uint64_t kPause_ns = kSecond_ns;
    if (load_acquire(&session->drain_runs)) {
        return true;
    }
    if (load_acquire(&session->finished) != 0 || !session->ask_lock.try_lock()) {
        return false;
    }
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (!session->drain_runs && now_ns - session->drain_tried_ns >= kPause_ns) {
        start_drain(session);
    }
    session->ask_lock.unlock();
    return load_acquire(&session->drain_runs);
}

// Returns false also if the task was not done in time; the drain may still do it later.
bool ask(Session* session, const DrainTask& task, uint64_t patience_ns = kTaskPatience_ns) {
    if (t_thread.is_drain || !has_drain(session)) {
        return perform(session, task);
    }
    const uint64_t patience = load_relaxed(&session->drain_hangs) ? 0 : patience_ns;
    const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + patience;
    if (!session->ask_lock.lock_within(patience)) {
        return false;
    }
    bool served = wait_until_served(session, until_ns);  // an earlier task whose sender stopped
                                                         // waiting
    if (served) {
        session->task = task;
        __atomic_fetch_add(&session->asked, 1, __ATOMIC_RELEASE);
        wake_drain(session);
        served = wait_until_served(session, until_ns);
    }
    const bool done = served && session->task_done;
    // Creating the file and other work may be slow, and nobody waits for it longer. That does not
    // mean that the drain hangs.
    const bool may_be_slow = task.kind == DrainTask::kBegin || task.kind == DrainTask::kCall;
    store_relaxed(&session->drain_hangs, !served && !may_be_slow);
    session->ask_lock.unlock();
    return done;
}

// The drain inherits the scheduling policy and the processors of the thread that creates it. That
// thread may be real-time and bound to a processor that it never leaves. The main thread's
// processors are the best guess for those of the process.
void leave_the_starters_processor() {
    const sched_param usual{};
    pthread_setschedparam(pthread_self(), SCHED_OTHER, &usual);
    cpu_set_t processors;
    if (sched_getaffinity(getpid(), sizeof processors, &processors) == 0) {  // getpid() selects the
                                                                             // main thread
        sched_setaffinity(0, sizeof processors, &processors);
    }
}

void* drain_main(void* argument) {
    auto* session = static_cast<Session*>(argument);
    begin_own_thread();
    t_thread.is_drain = true;
    leave_the_starters_processor();
    uint64_t last_flush_ns = 0;
    for (;;) {
        const uint32_t wakes = load_acquire(&session->drain_wakes);
        measure_clock();
        // A killed process cannot record when it ended. It ended after this.
        store_relaxed(&session->ring.header->alive_ns, clock_ns(CLOCK_MONOTONIC));
        serve_tasks(session);
        serve_control(session);
        if (worth_flushing(session, last_flush_ns) && session->flush_lock.lock_within(kSecond_ns)) {
            flush(session, kUnfinishedPatience_ns, false);
            if (session->ended && !session->file.has_index()) {
                session->file.write_index();  // chunks written after the end have cut off the index
            }
            session->flush_lock.unlock();
            last_flush_ns = clock_ns(CLOCK_MONOTONIC);
            look_for_python(session);
        }
        futex_wait(&session->drain_wakes, wakes, kDrainInterval_ns);
    }
    return nullptr;
}

}  // namespace

void start_drain(Session* session) {
    pthread_t thread{};
    session->drain_tried_ns = clock_ns(CLOCK_MONOTONIC);
    if (start_own_thread(drain_main, session, &thread) == 0) {
        // The thread sets its name too, but may not have run yet. No observer should see another
        // name.
        pthread_setname_np(thread, "fragtrace");
        store_release(&session->drain_runs, true);
    }
}

void wake_drain(Session* session) {
    count_up(&session->drain_wakes);
    futex_wake_all(&session->drain_wakes);
}

bool enough_waits(const Session* session) {
    const RingHeader* header = session->ring.header;
    const uint64_t waiting = load_relaxed(&header->head) - load_relaxed(&header->tail);
    return waiting >= header->slot_count / 4 || waiting >= TraceFile::kBatchEvents;
}

uint64_t claim_when_room(Session* session) {
    if (!has_drain(session)) {
        return flush_now(session) ? session->ring.try_claim() : 0;
    }
    if (load_relaxed(&session->gave_up_at) == load_relaxed(&session->room_made) + 1) {
        return 0;  // the drain hangs, and another thread has already waited in vain
    }
    const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    if (__atomic_fetch_add(&session->room_waiters, 1, __ATOMIC_ACQ_REL) == 0) {
        store_relaxed(&session->waiting_ns, begin_ns);
        wake_drain(session);
    }
    uint64_t sequence = 0;
    for (;;) {
        const uint32_t made = load_acquire(&session->room_made);
        sequence = session->ring.try_claim();
        if (sequence != 0) {
            break;
        }
        const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        const uint64_t hangs_ns =
            std::max(begin_ns, load_relaxed(&session->room_made_ns)) + kRoomPatience_ns;
        const uint64_t spent_ns =
            load_relaxed(&session->waited_ns) + (now_ns - load_relaxed(&session->waiting_ns));
        const uint64_t allowed_ns =
            kWaitAllowance_ns + (now_ns - session->start_monotonic_ns) / kWaitShare;
        if (now_ns >= hangs_ns) {
            store_relaxed(&session->gave_up_at, made + 1);
        }
        if (now_ns >= hangs_ns || spent_ns >= allowed_ns) {
            break;
        }
        futex_wait(&session->room_made, made, hangs_ns - now_ns);
    }
    if (__atomic_fetch_sub(&session->room_waiters, 1, __ATOMIC_ACQ_REL) == 1) {
        count_up(&session->waited_ns,
                 clock_ns(CLOCK_MONOTONIC) - load_relaxed(&session->waiting_ns));
    }
    return sequence;
}

void begin_trace(Session* session) {
    if (session->wants_file) {
        ask(session, {.kind = DrainTask::kBegin}, kBeginPatience_ns);
    }
}

bool flush_now(Session* session) {
    return ask(session, {.kind = DrainTask::kFlush});
}

bool start_writing(Session* session) {
    return ask(session, {.kind = DrainTask::kStart});
}

bool write_copy(Session* session, const char* why) {
    DrainTask task{.kind = DrainTask::kCopy};
    Text(task.why, sizeof task.why).add(why);
    return ask(session, task, kCopyPatience_ns);
}

bool call_on_drain(Session* session, bool (*call)()) {
    return ask(session, {.kind = DrainTask::kCall, .call = call});
}

void end_trace(Session* session, EndReason reason, bool last) {
    // Set here and not by the drain: from now on, a thread that records an event also writes it if
    // needed.
    store_release(&session->finished, last ? kFinishedLast : kFinished);
    const DrainTask task{.kind = DrainTask::kEnd, .reason = reason, .last = last};
    ask(session, task, session->options.flight ? kCopyPatience_ns : kTaskPatience_ns);
}

}  // namespace fragtrace::preload
