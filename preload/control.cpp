#include "control.h"

#include "drain.h"
#include "facts.h"
#include "ranges.h"
#include "session.h"
#include "thread_state.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

// Of the process, not of a session: forked children keep them.
uint32_t g_started_by_call;    // FRAGTRACE_START and FRAGTRACE_START_AFTER count no more
uint32_t g_starts_in_midlife;  // the session to come begins with kRecordingStarted
uint64_t g_waits_until_ns;     // CLOCK_MONOTONIC; 0 = until it is started
uint32_t g_signals;

// Straight into the ring: the drain, too, has something to say.
void record_own(Session* session, EventKind kind) {
    EventRecord event{};
    event.kind = kind;
    event.device = kDeviceUnknown;
    event.stream = kStreamUnknown;
    event.time_ns = clock_ns(CLOCK_MONOTONIC) - session->start_monotonic_ns;
    event.thread = static_cast<uint32_t>(syscall(SYS_gettid));
    const uint64_t sequence = session->ring.try_claim();
    if (sequence == 0) {
        count_up(&session->ring.header->lost_ring_full);
        return;
    }
    session->ring.publish(sequence, event, event.time_ns, event.thread);
}

bool change_state(uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(
        &g_session.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// The next event starts the session. Safe in a signal handler.
bool end_waiting() {
    store_release(&g_started_by_call, 1u);
    if (load_acquire(&g_session.state) != kWaiting) {
        return false;
    }
    store_release(&g_starts_in_midlife, 1u);
    return change_state(kWaiting, kIdle);
}

void on_signal(int /*signal*/) {
    const KeepErrno keep_errno;
    const uint32_t state = load_acquire(&g_session.state);
    if (state == kWaiting) {
        end_waiting();
    } else if (state == kRunning || state == kStopped) {
        count_up(&g_signals);
        wake_drain(&g_session);
    }
}

// Only where the program left the signal alone. False if it did not.
bool install_handler(int signal) {
    struct sigaction now {};

    if (sigaction(signal, nullptr, &now) != 0) {
        return false;
    }
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == on_signal) {
        return true;  // of the parent's session, or from the time of waiting
    }
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) {
        return false;
    }

    struct sigaction ours {};

    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    return sigaction(signal, &ours, nullptr) == 0;
}

// What the environment wants of a process that has not recorded yet.
bool waits_by_environment() {
    if (load_acquire(&g_started_by_call) != 0) {
        return false;
    }
    const bool stopped = option_starts_stopped();
    const uint32_t after_s = option_start_after_s();
    if (!stopped && after_s == 0) {
        return false;
    }
    const int signal = option_signal();
    if (signal != 0) {
        install_handler(signal);
    }
    if (after_s != 0) {
        g_waits_until_ns = clock_ns(CLOCK_MONOTONIC) + after_s * kSecond_ns;
    }
    return true;
}

}  // namespace

bool may_record() {
    const uint32_t state = load_acquire(&g_session.state);
    switch (state) {
        case kStarting:
        case kRunning:
            return true;
        case kIdle:
            if (option_off()) {
                // Settled: asking the environment at each call would cost time, and may meet a
                // thread that changes it.
                change_state(kIdle, kOff);
                return false;
            }
            if (waits_by_environment()) {
                change_state(kIdle, kWaiting);
                return false;
            }
            return true;
        case kWaiting: {
            const uint64_t until_ns = load_acquire(&g_waits_until_ns);
            return until_ns != 0 && clock_ns(CLOCK_MONOTONIC) >= until_ns && end_waiting();
        }
        default:
            return false;
    }
}

bool silent_on_purpose() {
    const uint32_t state = load_acquire(&g_session.state);
    return state == kStopped || state == kWaiting;
}

bool start_recording() {
    Session* session = running_session();
    if (session != nullptr && load_acquire(&session->state) == kStopped) {
        record_own(session, EventKind::kRecordingStarted);
        begin_ranges_again();
        change_state(kStopped, kRunning);
    } else {
        end_waiting();
    }
    const uint32_t state = load_acquire(&g_session.state);
    return state != kOff && (state != kIdle || !option_off());
}

bool stop_recording() {
    if (change_state(kIdle, kWaiting)) {
        g_waits_until_ns = 0;
        return true;
    }
    Session* session = running_session();
    if (session != nullptr && change_state(kRunning, kStopped)) {
        record_own(session, EventKind::kRecordingStopped);
    }
    return silent_on_purpose();
}

void begin_control(Session* session) {
    if (__atomic_exchange_n(&g_starts_in_midlife, 0, __ATOMIC_ACQ_REL) != 0) {
        record_own(session, EventKind::kRecordingStarted);
    }
    session->control_signals_served = load_acquire(&g_signals);
    if (session->options.control_signal != 0) {
        const bool ours = install_handler(session->options.control_signal);
        add_session_fact(session, "control.signal", ours ? "on" : "off: the program handles it");
    }
}

void serve_control_signal(Session* session) {
    const uint32_t signals = load_acquire(&g_signals);
    if (signals == session->control_signals_served) {
        return;
    }
    session->control_signals_served = signals;
    if (session->options.flight) {
        write_copy(session, "signal");
    } else if (load_acquire(&session->state) == kStopped) {
        start_recording();
    } else {
        stop_recording();
    }
}

}  // namespace fragtrace::preload

// What programs call; <fragtrace/mark.h> declares them. 0: done, -1: there is nothing to control.
extern "C" {

__attribute__((visibility("default"), used)) int fragtrace_start() {
    const fragtrace::preload::KeepErrno keep_errno;
    const fragtrace::preload::RecorderScope scope;
    return scope.entered() && fragtrace::preload::start_recording() ? 0 : -1;
}

__attribute__((visibility("default"), used)) int fragtrace_stop() {
    const fragtrace::preload::KeepErrno keep_errno;
    const fragtrace::preload::RecorderScope scope;
    return scope.entered() && fragtrace::preload::stop_recording() ? 0 : -1;
}

// Everything recorded so far is in a file when this returns; with a flight recorder in a copy.
__attribute__((visibility("default"), used)) int fragtrace_write() {
    using namespace fragtrace::preload;
    const KeepErrno keep_errno;
    const RecorderScope scope;
    Session* session = scope.entered() ? running_session() : nullptr;
    if (session == nullptr) {
        return -1;
    }
    const bool inside_hook = t_thread.inside_hook;
    t_thread.inside_hook = true;
    const bool written = session->options.flight ? write_copy(session, "call") : flush_now(session);
    t_thread.inside_hook = inside_hook;
    return written ? 0 : -1;
}
}
