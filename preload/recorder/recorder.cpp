#include "recorder/recorder.h"

#include "recorder/control.h"
#include "recorder/drain_thread.h"
#include "recorder/ranges.h"
#include "recorder/session.h"
#include "recorder/stack_native.h"
#include "recorder/stack_python.h"
#include "recorder/trace_facts.h"
#include "system/clock.h"
#include "system/thread_state.h"

#include <unistd.h>

namespace fragtrace::preload {
namespace {

// Each time this many events were recorded, the recording thread checks whether to wake the drain.
// That keeps the ring far from full at any rate of events.
constexpr uint64_t kLookEvery = 4096;

void count_refused(uint64_t events) {
    Session* session = running_session();
    count_up(
        session != nullptr ? &session->ring.header->lost_reentrant : &g_session.lost_before_start,
        events);
}

// FRAGTRACE_MIN_BYTES. A free has the size of its block, so no table is needed. The events that a
// free waits for follow it on the same thread.
bool too_small(const Options& options, const EventRecord& event) {
    if (options.min_block_bytes == 0) [[likely]] {
        return false;
    }
    switch (event.kind) {
        case EventKind::kBlockAlloc:
            return event.extra < options.min_block_bytes;
        case EventKind::kBlockFree:
            t_thread.free_was_too_small = event.extra < options.min_block_bytes;
            return t_thread.free_was_too_small;
        case EventKind::kPendingEvent:
            return t_thread.free_was_too_small;
        default:
            return false;
    }
}

uint64_t mark_value(uintptr_t place) {
    return uint64_t{place} ^ 0x51f3a86c27d90be4u;
}

// Nodes that were remembered in another session are invalid in this one.
void use_session(const Session* session) {
    if (t_thread.session_generation != session->generation) {
        t_thread.session_generation = session->generation;
        t_thread.python.count = 0;
        t_thread.counted_without_python = false;
    }
}

// The functions below separate what most events need from what few events need. Between two events,
// a program runs more code than fits in the processor's caches. So the cost of an event is the
// memory that it touches.

bool takes_stacks(const Session* session) {
    return session->stacks_wanted &&
           (load_relaxed(&session->stopped) == 0 || session->options.stacks_while_stopped);
}

[[gnu::noinline]] Stacks take_stacks() {
    const KeepErrno keep_errno;
    const RecorderScope scope;
    if (!scope.entered()) {
        return {};  // record() counts the event
    }
    Session* session = session_for_event();
    if (session == nullptr || !takes_stacks(session)) {
        return {};
    }
    use_session(session);
    return {native_stack(session), python_stack(session)};
}

inline uint64_t thread_now_ns() {
    const uint64_t now = monotonic_ns();
    if (now > t_thread.last_time_ns) [[likely]] {
        t_thread.last_time_ns = now;
    }
    return t_thread.last_time_ns;
}

[[gnu::cold, gnu::noinline]] uint64_t claim_late(Session* session) {
    const SlowPath slow_path;
    const uint64_t sequence = claim_when_room(session);
    if (sequence == 0) {
        count_up(&session->ring.header->lost_ring_full);
    }
    return sequence;
}

// After the end of the trace, the drain continues, and the last handler of exit() writes the
// remaining events. After that handler, the recording thread must write its event itself.
void serve_end(Session* session) {
    if (load_acquire(&session->finished) == kFinishedLast || !load_relaxed(&session->drain_runs)) {
        flush_now(session);
    }
}

[[gnu::cold, gnu::noinline]] void serve_drain(Session* session, uint64_t sequence) {
    const SlowPath slow_path;
    if (sequence % kLookEvery == 0 && enough_waits(session)) {
        wake_drain(session);
    }
    if (load_acquire(&session->finished) != 0) {
        serve_end(session);
    }
}

// Runs inside the recorder, on a thread that knows its id. Preserves errno.
inline uint64_t put_into_ring(Session* session, const EventRecord& event) {
    const uint64_t time_ns = event.time_ns == 0 ? thread_now_ns() : event.time_ns;
    // The first event may have a time before the start of the session that it started.
    const uint64_t since_start_ns =
        time_ns < session->start_monotonic_ns ? 0 : time_ns - session->start_monotonic_ns;
    const uint32_t thread = event.thread == 0 ? t_thread.thread_id : event.thread;
    uint64_t sequence = session->ring.try_claim();
    if (sequence == 0) [[unlikely]] {
        sequence = claim_late(session);
        if (sequence == 0) {
            return 0;
        }
    }
    session->ring.publish(sequence, event, since_start_ns, thread);
    if (sequence % kLookEvery == 0 || load_acquire(&session->finished) != 0) [[unlikely]] {
        serve_drain(session, sequence);
    }
    return sequence;
}

// For the first event, and for events that may have to be refused.
[[gnu::cold, gnu::noinline]] uint64_t record_with_care(const EventRecord& event) {
    const SlowPath slow_path;
    if (load_relaxed(&g_ranges_to_record) != 0) {
        record_open_ranges();
    }
    const RecorderScope scope;
    if (!scope.entered()) {
        count_refused(1);
        return 0;
    }
    Session* session = session_for_event();
    if (session == nullptr) {
        count_up(&g_session.lost_before_start);
        return 0;
    }
    if (too_small(session->options, event)) {
        return 0;
    }
    (void)thread_id();
    return put_into_ring(session, event);
}

}  // namespace

HookScope::HookScope() : outermost_(!t_thread.inside_hook) {
    const auto here = reinterpret_cast<uintptr_t>(&mark_);
    if (!outermost_ && t_thread.hook_mark != 0) {
        // Stacks grow down: memory above the current frame belongs to live frames.
        outermost_ = t_thread.hook_mark <= here ||
                     *reinterpret_cast<const volatile uint64_t*>(t_thread.hook_mark) !=
                         mark_value(t_thread.hook_mark);
    }
    if (outermost_) {
        mark_ = mark_value(here);
        t_thread.inside_hook = true;
        t_thread.hook_mark = here;
    }
}

HookScope::~HookScope() {
    if (outermost_) {
        mark_ = 0;
        t_thread.inside_hook = false;
        t_thread.hook_mark = 0;
    }
}

uint64_t now_ns() {
    return thread_now_ns();
}

Stacks capture_stacks() {
    // If there is nothing to do, only the first cache line of the session is read.
    Session* session = running_session();
    if (session == nullptr || takes_stacks(session)) {
        return take_stacks();
    }
    return {};
}

uint64_t record(const EventRecord& event) {
    Session* session = running_session();
    if (session == nullptr || session->filters || t_thread.inside_recorder ||
        load_relaxed(&g_ranges_to_record) != 0 || t_thread.thread_id == 0) [[unlikely]] {
        return record_with_care(event);
    }
    const RecorderScope scope;
    return put_into_ring(session, event);
}

bool refuse_call_from_handler() {
    if (!t_thread.inside_recorder) {
        return false;
    }
    count_refused(1);
    return true;
}

void record_fact(const char* key, const char* value) {
    const SlowPath slow_path;
    const RecorderScope scope;
    if (!scope.entered() || key == nullptr || value == nullptr) {
        return;
    }
    store_fact(key, value);
    Session* session = running_session();
    if (session != nullptr) {
        wake_drain(session);
        if (load_acquire(&session->finished) != 0) {
            serve_end(session);
        }
    }
}

bool recording_enabled() {
    return load_acquire(&g_session.state) == kRunning || may_record();
}

void finish(EndReason reason, bool last) {
    const SlowPath slow_path;
    Session* session = running_session();
    // A vfork child shares our memory until it calls exec or exits: its exit is not ours.
    if (session == nullptr || getpid() != session->pid) {
        return;
    }
    const RecorderScope scope;
    const bool inside_hook = t_thread.inside_hook;
    t_thread.inside_hook = true;
    end_trace(session, reason, last);
    t_thread.inside_hook = inside_hook;
}

}  // namespace fragtrace::preload
