#include "recorder/control.h"

#include "recorder/drain_thread.h"
#include "recorder/ranges.h"
#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "system/thread_state.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

// The program's last request, which has priority over the environment. It belongs to the process,
// not to a session: forked children keep it.
enum Wish : uint32_t { kNoWish = 0, kStart = 1, kStop = 2 };

uint32_t g_wish;
uint64_t g_starts_at_ns;  // CLOCK_MONOTONIC; 0 = no start by time
uint32_t g_signals;
Lock g_lock;  // for threads that start or stop recording

constexpr uint64_t kPatience_ns = 5 * kSecond_ns;

EventRecord own_event(const Session* session, EventKind kind) {
    EventRecord event{};
    event.kind = kind;
    event.device = kDeviceUnknown;
    event.stream = kStreamUnknown;
    event.time_ns = clock_ns(CLOCK_MONOTONIC) - session->start_monotonic_ns;
    event.thread = static_cast<uint32_t>(syscall(SYS_gettid));
    return event;
}

// Writes to the ring directly, because the drain may call this too.
bool record_stop(Session* session) {
    uint64_t sequence = session->ring.try_claim();
    if (sequence == 0 && flush_now(session)) {
        sequence = session->ring.try_claim();
    }
    if (sequence == 0) {
        return false;
    }
    const EventRecord event = own_event(session, EventKind::kRecordingStopped);
    session->ring.publish(sequence, event, event.time_ns, event.thread);
    return true;
}

// Needs g_lock. Stacks are switched on first: so a few events before the start have stacks, and
// none after it lacks them.
bool start_again(Session* session) {
    if (session->stopped == 0) {
        return true;
    }
    store_release(&session->stopped, 0u);
    begin_ranges_again();
    if (!start_writing(session)) {
        store_release(&session->stopped, 1u);
        return false;
    }
    store_release(&g_wish, uint32_t{kStart});
    store_release(&g_starts_at_ns, uint64_t{0});
    return true;
}

bool stop_now(Session* session) {
    if (session->stopped != 0) {
        store_release(&g_starts_at_ns, uint64_t{0});
        return true;
    }
    if (!record_stop(session)) {
        return false;
    }
    store_release(&session->stopped, 1u);
    return true;
}

// Returns the running session, or nullptr if there is none to control. Without a session, the
// request is stored for the next session, and `for_later` is true if one may start. If another
// thread is starting a session, it may have read the request already: so this waits for the start
// to finish.
Session* session_to_control(Wish wish, bool* for_later) {
    uint32_t state = load_acquire(&g_session.state);
    if (state != kRunning) {
        // Sequentially consistent with the starting thread's store and load: one of the two threads
        // sees the other's store.
        __atomic_store_n(&g_wish, uint32_t{wish}, __ATOMIC_SEQ_CST);
        state = __atomic_load_n(&g_session.state, __ATOMIC_SEQ_CST);
        *for_later = state == kIdle && may_record();
    }
    return state == kStarting || state == kRunning ? session_once_started() : nullptr;
}

void on_signal(int /*signal*/) {
    const SlowPath slow_path;
    const uint32_t state = load_acquire(&g_session.state);
    if (state == kRunning) {
        count_up(&g_signals);
        wake_drain(&g_session);
    } else if (state == kIdle && load_acquire(&g_wish) == kStop) {
        store_release(&g_wish, uint32_t{kStart});  // in a forked child, before its first event
    }
}

// Installs the handler unless the program uses the signal. Returns false if it does.
bool install_handler(int signal) {
    struct sigaction now {};

    if (sigaction(signal, nullptr, &now) != 0) {
        return false;
    }
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == on_signal) {
        return true;  // installed by the parent's session
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

}  // namespace

bool may_record() {
    const uint32_t state = load_acquire(&g_session.state);
    if (state == kIdle && option_off()) {
        // The answer is stored: reading the environment at each call would cost time, and another
        // thread may change the environment meanwhile.
        uint32_t idle = kIdle;
        __atomic_compare_exchange_n(
            &g_session.state, &idle, uint32_t{kOff}, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return false;
    }
    return state != kOff;
}

bool begins_stopped() {
    const uint32_t wish = __atomic_load_n(&g_wish, __ATOMIC_SEQ_CST);  // see session_to_control()
    if (wish != kNoWish) {
        return wish == kStop;
    }
    const uint32_t after_s = option_start_after_s();
    if (after_s != 0 && g_starts_at_ns == 0) {
        g_starts_at_ns = clock_ns(CLOCK_MONOTONIC) + after_s * kSecond_ns;
    }
    return option_starts_stopped() || after_s != 0;
}

bool record_start(Session* session, uint64_t held) {
    EventRecord event = own_event(session, EventKind::kRecordingStarted);
    const uint64_t sequence = session->ring.try_claim_before(held + 2, &event.size);
    if (sequence == 0) {
        return false;
    }
    session->ring.publish(sequence, event, event.time_ns, event.thread);
    return true;
}

bool start_recording() {
    bool for_later = false;
    Session* session = session_to_control(kStart, &for_later);
    if (session == nullptr || !g_lock.lock_within(kPatience_ns)) {
        return for_later;
    }
    const bool started = start_again(session);
    g_lock.unlock();
    return started;
}

bool stop_recording() {
    bool for_later = false;
    Session* session = session_to_control(kStop, &for_later);
    if (session == nullptr || !g_lock.lock_within(kPatience_ns)) {
        return for_later;
    }
    const bool stopped = stop_now(session);
    g_lock.unlock();
    return stopped;
}

void keep_control_in_child(const Session* session) {
    g_lock.reset();
    if (session->stopped != 0 && g_starts_at_ns == 0) {
        g_wish = kStop;
    }
}

void begin_control(Session* session) {
    session->control_signals_served = load_acquire(&g_signals);
    if (session->options.control_signal != 0) {
        const bool ours = install_handler(session->options.control_signal);
        add_session_fact(session, "control.signal", ours ? "on" : "off: the program handles it");
    }
}

void serve_control(Session* session) {
    const uint64_t starts_at_ns = load_acquire(&g_starts_at_ns);
    if (starts_at_ns != 0 && clock_ns(CLOCK_MONOTONIC) >= starts_at_ns) {
        start_recording();
    }
    const uint32_t signals = load_acquire(&g_signals);
    if (signals == session->control_signals_served) {
        return;
    }
    if (session->options.flight && session->has_file) {
        session->control_signals_served = signals;
        write_copy(session, "signal");
    } else if (load_acquire(&session->stopped) != 0 ? start_recording() : stop_recording()) {
        session->control_signals_served = signals;  // otherwise tried again at the next call
    }
}

}  // namespace fragtrace::preload

// Functions that programs call; <fragtrace/mark.h> declares them. Return 0 on success, -1 if there
// is nothing to control.
extern "C" {

// When this returns, the file contains all allocations that were live before the start.
__attribute__((visibility("default"), used)) int fragtrace_start() {
    using namespace fragtrace::preload;
    const SlowPath slow_path;
    const RecorderScope scope;
    if (!scope.entered()) {
        return -1;
    }
    const bool inside_hook = t_thread.inside_hook;
    t_thread.inside_hook = true;
    const bool started = start_recording();
    t_thread.inside_hook = inside_hook;
    return started ? 0 : -1;
}

__attribute__((visibility("default"), used)) int fragtrace_stop() {
    const fragtrace::preload::SlowPath slow_path;
    const fragtrace::preload::RecorderScope scope;
    return scope.entered() && fragtrace::preload::stop_recording() ? 0 : -1;
}

// When this returns, everything recorded so far is in a file; with a flight recorder, in a copy.
__attribute__((visibility("default"), used)) int fragtrace_write() {
    using namespace fragtrace::preload;
    const SlowPath slow_path;
    const RecorderScope scope;
    Session* session = scope.entered() ? running_session() : nullptr;
    if (session == nullptr) {
        return -1;
    }
    const bool inside_hook = t_thread.inside_hook;
    t_thread.inside_hook = true;
    const bool written = session->options.flight ? write_copy(session, "call") : flush_now(session);
    t_thread.inside_hook = inside_hook;
    return written && session->has_file ? 0 : -1;
}
}
