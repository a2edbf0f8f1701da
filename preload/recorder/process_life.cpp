// Start and end of the process: the constructor, fork, and every way to exit.
//
// The constructor registers the handlers of fork and exit, and looks for an earlier program of a
// process that has worked before. Most processes that inherit the preload never use a GPU, and must
// not pay for it.
#include "recorder/child_ends.h"
#include "recorder/drain_thread.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "system/environment.h"
#include "system/thread_state.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kForkPatience_ns = 100 * kMillisecond_ns;
// After one wait in vain: the drain hangs, perhaps on its storage, and a program may fork often.
constexpr uint64_t kNextForkPatience_ns = kMillisecond_ns;
constexpr uint64_t kReportPatience_ns = 100 * kMillisecond_ns;

bool g_fork_waited_in_vain;

// A child forked in the middle of a start would inherit half a session. A child forked while the
// drain asks the loader for the modules would inherit a lock that the C library does not repair.
void before_fork() {
    const SlowPath slow_path;
    if (load_acquire(&g_session.state) == kStarting && !t_thread.inside_recorder) {
        futex_wait(&g_session.state, kStarting, kForkPatience_ns);
    }
    if (running_session() != nullptr) {
        t_thread.holds_flush_lock = g_session.flush_lock.lock_within(
            load_relaxed(&g_fork_waited_in_vain) ? kNextForkPatience_ns : kForkPatience_ns);
        store_relaxed(&g_fork_waited_in_vain, !t_thread.holds_flush_lock);
    }
}

void after_fork_in_parent() {
    if (t_thread.holds_flush_lock) {
        t_thread.holds_flush_lock = false;
        g_session.flush_lock.unlock();
    }
}

void after_fork_in_child() {
    const SlowPath slow_path;
    t_thread.holds_flush_lock = false;
    g_fork_waited_in_vain = false;
    // A signal handler that interrupted the recorder and forked may return into the recorder. Then
    // the next event finds the parent's token cleared and forgets the session.
    if (!t_thread.inside_recorder) {
        forget_session_of_parent();
    }
}

// Called before or after finish(), which writes this fact.
void note_exit_code(int status) {
    Session* session = running_session();
    // A vfork child shares our memory until it calls exec or exits: its exit is not ours.
    if (session == nullptr || getpid() != session->pid) {
        return;
    }
    const RecorderScope scope;
    char digits[8];
    Text code(digits, sizeof digits);
    code.add_number(static_cast<uint64_t>(status) & 0xff);  // the part of the status that the
                                                            // parent receives
    add_session_fact(session, "end.code", code.c_str());
}

bool g_last_handler_ran;

[[gnu::noinline]] void end_with_code(int status) {
    const SlowPath slow_path;
    note_exit_code(status);
    store_release(&g_last_handler_ran, true);
    const Session* session = running_session();
    if (session != nullptr && load_acquire(&session->finished) != 0) {
        finish(EndReason::kNormal, true);
    }
}

// The last of all exit handlers if the library was preloaded: its destructor has already run.
// Placed next to code that runs when the library is loaded: elsewhere it would cause an extra page
// fault in every process.
__attribute__((section(".text.startup"))) void on_exit_code(int status, void*) {
    if (load_acquire(&g_session.state) != kIdle) {
        end_with_code(status);
    }
}

// Whether the process has worked already, perhaps as another program that called exec. Most
// processes have just begun, and must not pay for a search, nor for the pages of clock_gettime().
[[gnu::always_inline]] inline bool has_worked() {
    constexpr long kStart_ns = 2 * static_cast<long>(kMillisecond_ns);
    timespec used{};
    return syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used) == 0 &&
           (used.tv_sec > 0 || used.tv_nsec > kStart_ns);
}

__attribute__((constructor)) void on_load(int count, char** arguments, char** variables) {
    note_environment(count, arguments, variables);
    note_standard_error();
    if (has_worked()) {
        const SlowPath slow_path;
        note_earlier_program();
    }
    at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    on_exit(on_exit_code, nullptr);
}

// Set `path_is_settled` only with the flush lock: the drain may otherwise be starting another part.
void describe_losses(const Session& session, bool path_is_settled, Text* text) {
    const RingHeader* ring = session.ring.header;
    const uint64_t lost = load_relaxed(&ring->lost_ring_full) +
                          load_relaxed(&ring->lost_reentrant) + session.lost_unfinished +
                          session.lost_write_failed + session.lost_removed +
                          session.lost_before_start;
    if (!session.has_file || (lost == 0 && load_relaxed(&ring->trace_write_errors) == 0)) {
        return;
    }
    text->add("fragtrace: ");
    if (lost == 0) {
        text->add("no events were lost");
    } else {
        text->add_number(lost).add(" events were lost");
    }
    const int error = session.file.last_error();
    if (error != 0 &&
        (session.lost_write_failed != 0 || load_relaxed(&ring->trace_write_errors) != 0)) {
        text->add("; writing failed: ");
        add_error(text, error);
    }
    if (session.parts.copy_error != 0) {
        text->add("; a copy of the last parts could not be written: ");
        add_error(text, session.parts.copy_error);
    }
    if (session.lost_removed != 0) {
        text->add("; somebody removed the trace, or cut it");
    }
    if (path_is_settled) {
        text->add(lost == 0 ? "; the trace is in " : "; the rest is in ");
        text->add(session.file.path());
    }
    text->add("\n");
}

// Prints one line, only if events are missing from the trace: no output means complete.
void report_losses() {
    const Session& session = g_session;
    char line[1024];
    Text text(line, sizeof line);
    const bool running = load_acquire(&session.state) == kRunning;
    // The drain writes the reason of a failure under this lock. While it hangs, it is not read.
    const bool settled = !running || g_session.flush_lock.lock_within(kReportPatience_ns);
    const uint64_t refused = load_relaxed(&session.lost_before_start) + session.lost_removed;
    if (settled && session.failure[0] != '\0' && !session.has_file && refused != 0) {
        const uint64_t more = running ? load_relaxed(&session.ring.header->lost_ring_full) : 0;
        text.add("fragtrace: nothing was recorded: ").add(session.failure);
        // After a start that failed, later events are not counted.
        text.add(running ? " (" : " (at least ").add_number(refused + more);
        text.add(refused + more == 1 ? " event)\n" : " events)\n");
    } else if (running && !session.has_file && session.wants_file) {
        text.add("fragtrace: nothing was recorded: ").add(session.options.output);
        text.add(" does not answer (").add_number(load_relaxed(&session.ring.header->head));
        text.add(" events)\n");
        g_session.ring.remove_file();  // no trace would ever refer to the ring
    } else if (running) {
        describe_losses(session, settled, &text);
    }
    if (running && settled) {
        g_session.flush_lock.unlock();
    }
    if (text.size() != 0) {
        say(text);
    }
}

__attribute__((destructor)) void on_exit_or_unload() {
    if (load_acquire(&g_session.state) == kIdle) {
        return;  // most processes: nothing was recorded, and touching more of our pages would cost
                 // time
    }
    finish(EndReason::kNormal, load_acquire(&g_last_handler_ran));
    if (g_session.pid == 0 || g_session.pid == getpid()) {
        report_losses();
    }
}

void quick_end(int status) {
    const SlowPath slow_path;
    note_exit_code(status);
    finish(EndReason::kQuickExit, true);
    if (g_session.pid != 0 && g_session.pid == getpid()) {
        report_losses();
    }
}

}  // namespace
}  // namespace fragtrace::preload

// These functions end the process without running destructors, including ours. exit() does not call
// them: it enters the kernel from inside the C library.
extern "C" {

__attribute__((visibility("default"), noreturn)) void _exit(int status) {
    fragtrace::preload::quick_end(status);
    for (;;) {
        syscall(SYS_exit_group, status);
    }
}

__attribute__((visibility("default"), noreturn)) void _Exit(int status) {
    _exit(status);
}

__attribute__((visibility("default"), noreturn)) void quick_exit(int status) {
    using QuickExit = void (*)(int);
    fragtrace::preload::quick_end(status);
    const auto real = reinterpret_cast<QuickExit>(dlsym(RTLD_NEXT, "quick_exit"));
    if (real != nullptr) {
        real(status);  // runs the at_quick_exit handlers; their events still reach the file
    }
    _exit(status);
}
}
