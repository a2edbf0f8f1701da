#include "recorder/session.h"

#include "recorder/control.h"
#include "recorder/drain_thread.h"
#include "recorder/numbered_names.h"
#include "recorder/program_pools.h"
#include "recorder/ranges.h"
#include "recorder/stack_native.h"
#include "recorder/stack_python.h"
#include "recorder/trace_facts.h"
#include "stacks/thread_stacks.h"
#include "system/clock.h"
#include "system/thread_state.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {

constinit Session g_session{};

namespace {

// Maximum time that a thread waits for another one to start the session. This also ends a deadlock:
// the starting thread may need the loader's lock while the lock's owner waits here.
constexpr uint64_t kStartPatience_ns = 2 * kSecond_ns;

constexpr size_t kTokenPage_bytes = 4096;

const uint32_t kAlwaysParent = 1;

// One page for the life of the process; each session reuses it.
const uint32_t* make_parent_token() {
    static uint32_t* page = nullptr;
    if (page == nullptr) {
        auto* memory = static_cast<uint32_t*>(map_private(kTokenPage_bytes));
        if (memory == nullptr || madvise(memory, kTokenPage_bytes, MADV_WIPEONFORK) != 0) {
            unmap(memory, kTokenPage_bytes);
            return &kAlwaysParent;  // old kernel: only the fork handlers detect a fork
        }
        page = memory;
    }
    *page = 1;
    return page;
}

void make_session_id(uint64_t id[2]) {
    if (getrandom(id, 2 * sizeof id[0], GRND_NONBLOCK) != static_cast<ssize_t>(2 * sizeof id[0])) {
        id[0] = clock_ns(CLOCK_REALTIME);
        id[1] = clock_ns(CLOCK_MONOTONIC) ^ (static_cast<uint64_t>(getpid()) << 40);
    }
}

void fill_trace_header(Session* session) {
    TraceHeader& header = session->header;
    memset(&header, 0, sizeof header);
    memcpy(header.magic, kTraceMagic, sizeof header.magic);
    header.version = kFormatVersion;
    header.byte_order = kByteOrderMark;
    header.header_bytes = sizeof header;
    header.session[0] = session->id[0];
    header.session[1] = session->id[1];
    session->start_monotonic_ns = clock_ns(CLOCK_MONOTONIC);
    header.start_monotonic_ns = session->start_monotonic_ns;
    header.start_unix_ns = clock_ns(CLOCK_REALTIME);
    header.pid = static_cast<uint32_t>(session->pid);
    header.parent_pid = static_cast<uint32_t>(getppid());
    header.rank = session->place.rank;
    header.local_rank = session->place.local_rank;
    header.process_start_ticks = process_start_ticks(0, nullptr);
    utsname host{};
    if (uname(&host) == 0) {
        Text(header.host, sizeof header.host).add(host.nodename);
    }
}

bool fail(Session* session, const char* what, int error) {
    Text text(session->failure, sizeof session->failure);
    text.add(what);
    if (session->options.output[0] != '\0') {
        text.add(" in ").add(session->options.output);
    }
    text.add(": ");
    add_error(&text, error);
    return false;
}

bool create_file(Session* session) {
    session->file.keep_free(session->options.keep_free_percent, session->options.keep_free_bytes);
    char name[kNameCapacity];
    trace_name(*session, name);
    if (!session->file.create(session->options.output,
                              name,
                              static_cast<int>(session->options.compression_level),
                              session->options.in_parts)) {
        const int error = errno;
        session->file.abandon(true);
        return fail(session, "cannot create a trace", error);
    }
    return true;
}

// The file is created later, and the host may change its current directory until then. A path that
// would become too long stays relative.
void make_absolute(char* path) {
    static char folder[kMaxPathBytes];  // static because the stack may be small; only one session
                                        // starts at a time
    const size_t size = strlen(path) + 1;
    if (path[0] == '/' || getcwd(folder, sizeof folder) == nullptr) {
        return;
    }
    const size_t before = strlen(folder) + (size == 1 ? 0 : 1);
    if (before + size <= kMaxPathBytes) {
        memmove(path + before, path, size);
        memcpy(path, folder, before);
        path[before - 1] = size == 1 ? path[before - 1] : '/';
    }
}

bool start(Session* session) {
    read_options(&session->options);
    session->failure[0] = '\0';
    session->filters = session->options.min_block_bytes != 0;
    session->stacks_wanted = session->options.native_stacks || session->options.python_stacks;
    if (session->forked && !session->options.follow_fork) {
        return false;
    }
    session->pid = getpid();
    make_session_id(session->id);
    session->own_text = own_text();
    session->stopped = begins_stopped() ? 1 : 0;
    session->wants_file = session->stopped == 0;
    find_job_place(&session->place);
    fill_trace_header(session);
    if (!expand_output(session)) {
        return fail(session, "cannot create a trace", ENAMETOOLONG);
    }
    make_absolute(session->options.output);
    if (!session->ring.create(session->id,
                              session->options.ring_events,
                              session->options.ring_directory,
                              session->options.output,
                              session->wants_file) ||
        !session->stacks.create(&session->ring) || !start_parts(session)) {
        return fail(session, "cannot map memory for a trace", ENOMEM);
    }
    session->ring.header->process_start_ticks = session->header.process_start_ticks;
    Text(session->header.ring_path, sizeof session->header.ring_path).add(session->ring.path());
    add_start_facts(session);
    add_job_facts(session);
    add_stored_facts(session);
    start_native_stacks(session);
    start_python_stacks(session);
    session->parent_token = make_parent_token();
    begin_control(session);
    if (session->stopped == 0) {
        begin_ranges_again();
    }
    start_clock();
    start_drain(session);
    return true;
}

Session* start_or_wait() {
    Session* session = &g_session;
    uint32_t state = kIdle;
    if (__atomic_compare_exchange_n(
            &session->state, &state, kStarting, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) {
        // A handler may jump out of the call that it interrupted. So it runs only after the state
        // is settled: otherwise other threads would wait for this start at each call.
        const SignalsHeldBack no_handlers;
        // Calls that the start makes must not come back to us through a hook.
        const bool inside_hook = t_thread.inside_hook;
        t_thread.inside_hook = true;
        ++session->generation;
        bool started = false;
        {
            const SignalTakenBack no_signal(SIGXFSZ);
            started = start(session);
        }
        t_thread.inside_hook = inside_hook;
        store_release(&session->state, static_cast<uint32_t>(started ? kRunning : kOff));
        futex_wake_all(&session->state);
        if (started) {
            add_stored_facts(session);  // facts that came during the start
            add_communicator_fact(session);
            begin_trace(session);
        }
        return started ? session : nullptr;
    }
    return session_once_started();
}

}  // namespace

Session* session_once_started() {
    Session* session = &g_session;
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    uint32_t state = load_acquire(&session->state);
    while (state == kStarting) {
        const uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;
        if (waited >= kStartPatience_ns) {
            return nullptr;
        }
        futex_wait(&session->state, kStarting, kStartPatience_ns - waited);
        state = load_acquire(&session->state);
    }
    return running_session();
}

bool begin_file(Session* session) {
    // If the folder was removed with the trace, it is not created again.
    if (session->replaces_file && access(session->options.output, F_OK) != 0) {
        return fail(session, "somebody removed the trace and its folder", errno);
    }
    if (!create_file(session)) {
        return false;
    }
    session->ring.name_file();
    Text(session->header.ring_path, sizeof session->header.ring_path).add(session->ring.path());
    if (!write_trace_header(session, session->parts.number)) {
        fail(session, "cannot write a trace", session->file.last_error());
        session->file.abandon(true);
        return false;
    }
    return true;
}

Session* session_for_event() {
    Session* session = &g_session;
    if (load_acquire(&session->state) == kRunning) {
        if (__builtin_expect(static_cast<long>(*session->parent_token != 0), 1) != 0) {
            return session;
        }
        // Forked by a bare clone(): the C library did not repair its locks in this child, and our
        // drain may have owned the loader's lock. Starting a session here could hang forever.
        forget_session_of_parent();
        Text(session->failure, sizeof session->failure)
            .add("this process was forked without fork()");
        store_release(&session->state, static_cast<uint32_t>(kOff));
    }
    if (!may_record()) {
        return nullptr;
    }
    const NoCancellation no_cancellation;
    return start_or_wait();
}

bool write_trace_header(Session* session, uint32_t part) {
    session->header.part = part;
    return session->file.write_header(&session->header);
}

void forget_session_of_parent() {
    Session* session = &g_session;
    const uint32_t state = load_acquire(&session->state);
    if (state == kRunning) {
        keep_control_in_child(session);
        session->ring.abandon();
        session->file.abandon(false);
        session->stacks.abandon();
        session->parts.live.abandon();
    }
    // If another thread of the parent was starting a session, its partial state is abandoned: it is
    // small, and too incomplete to be released safely.
    const uint32_t generation = session->generation;
    const bool forked = session->forked || state != kIdle;
    const bool stays_off = state == kOff && session->forked;
    memset(static_cast<void*>(session), 0, sizeof *session);
    session->generation = generation + 1;
    session->forked = forked;
    session->state = stays_off ? kOff : kIdle;
    reset_facts_lock();
    reset_communicator_lock();
    reset_numbers_lock();
    reset_program_pools_lock();
    forget_python();
    forget_thread_stacks();
    const uint32_t parent_thread = t_thread.thread_id;
    t_thread.thread_id = 0;
    forget_ranges_of_other_threads(parent_thread);
}

}  // namespace fragtrace::preload
