#include "drain.h"

#include <fragtrace/codec.h>

#include "clock.h"
#include "control.h"
#include "facts.h"
#include "session.h"
#include "stack_python.h"
#include "stack_walk.h"
#include "thread_state.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kDrainInterval_ns = 100 * kMillisecond_ns;
// Small batches compress badly; a quiet program's events may wait in the ring, where they are safe.
constexpr uint64_t kQuietInterval_ns = kSecond_ns;
constexpr uint64_t kRoomPatience_ns = 20 * kMillisecond_ns;
// After so many waits in vain nobody waits until there is room: a drain that hangs on its disk
// costs the host a fifth of a second once, a drain that is merely slow to be scheduled costs no
// event.
constexpr uint32_t kFruitlessWaits = 10;
// After which a claimed slot that nobody fills is given up: its thread died inside record().
constexpr uint64_t kUnfinishedPatience_ns = 5 * kSecond_ns;
constexpr uint64_t kUnfinishedPatienceAtEnd_ns = 100 * kMillisecond_ns;
constexpr int kTriesToStart = 10;
constexpr uint64_t kFlushLockPatience_ns = 2 * kSecond_ns;
constexpr uint32_t kNodesPerChunk = 65536;
constexpr size_t kDrainStack_bytes = 256 * 1024;

bool write_or_count(Session* session, bool written) {
    if (!written) {
        count_up(&session->ring.header->trace_write_errors);
    }
    return written;
}

void write_modules(Session* session) {
    const ModuleVersion version = module_version();
    if (version.added == session->modules_written.added &&
        version.removed == session->modules_written.removed) {
        return;
    }
    if (version.removed != session->modules_written.removed) {
        forget_unloaded_code();  // the C library unloads modules of its own without dlclose()
    }
    ByteWriter out(session->file.scratch(), TraceFile::kScratch_bytes);
    const uint32_t count = encode_modules(&out);
    if (write_or_count(
            session,
            session->file.write_chunk(ChunkType::kModules, count, 0, 0, out.data(), out.size()))) {
        session->modules_written = version;
    }
}

bool write_facts(Session* session) {
    RingHeader* header = session->ring.header;
    const uint32_t end = load_acquire(&header->facts_bytes);
    const uint32_t begin = header->facts_bytes_written;
    if (begin == end) {
        return true;
    }
    uint32_t lines = 0;
    for (uint32_t i = begin; i < end; ++i) {
        lines += session->ring.facts[i] == '\n' ? 1 : 0;
    }
    if (!write_or_count(
            session,
            session->file.write_chunk(
                ChunkType::kFacts, lines, 0, 0, session->ring.facts + begin, end - begin))) {
        return false;
    }
    header->facts_bytes_written = end;
    return true;
}

bool write_code(Session* session) {
    RingHeader* header = session->ring.header;
    const uint32_t end = load_acquire(&header->code_bytes);
    const uint32_t begin = header->code_bytes_written;
    if (begin == end) {
        return true;
    }
    ByteReader reader(session->ring.code + begin, end - begin);
    uint32_t count = 0;
    CodeRecord record{};
    while (reader.left() != 0 && decode_code(&reader, &record)) {
        ++count;
    }
    if (!write_or_count(
            session,
            session->file.write_chunk(
                ChunkType::kCode, count, 0, 0, session->ring.code + begin, end - begin))) {
        return false;
    }
    header->code_bytes_written = end;
    return true;
}

// A node that was numbered but not filled belongs to a thread between two stores; the events at
// hand cannot refer to it, but its number lies below theirs, and later ones may refer to it.
void wait_until_filled(const StackNode* node) {
    constexpr int kYields = 100;
    constexpr int kTries = kYields + 400;
    for (int i = 0; i < kTries && load_acquire(&node->frame) == 0; ++i) {
        if (i < kYields) {
            yield_cpu();
        } else {  // not running: on a busy machine that can last some time slices
            const uint32_t never = 0;
            futex_wait(&never, 0, kMillisecond_ns / 4);
        }
    }
}

bool write_nodes(Session* session) {
    RingHeader* header = session->ring.header;
    const uint32_t end = load_acquire(&header->node_count);
    while (header->nodes_written < end) {
        const uint32_t first = header->nodes_written;
        const uint32_t left = end - first;
        const uint32_t count = left < kNodesPerChunk ? left : kNodesPerChunk;
        for (uint32_t i = first; i < first + count; ++i) {
            wait_until_filled(&session->ring.nodes[i]);
        }
        ByteWriter out(session->file.scratch(), TraceFile::kScratch_bytes);
        if (!encode_nodes(session->ring.nodes, first, count, &out) ||
            !write_or_count(session,
                            session->file.write_chunk(
                                ChunkType::kStacks, count, first, 0, out.data(), out.size()))) {
            return false;
        }
        header->nodes_written = first + count;
    }
    return true;
}

// Published events from `first` on, at most one batch, none above `last`.
uint32_t published_from(const Session* session, uint64_t first, uint64_t last) {
    uint32_t count = 0;
    while (first + count <= last && count < TraceFile::kBatchEvents &&
           session->ring.is_published(first + count)) {
        ++count;
    }
    return count;
}

void advance_tail(Session* session, uint64_t tail) {
    store_release(&session->ring.header->tail, tail);
    store_release(&session->fruitless_waits, 0u);
    count_up(&session->room_made);
    if (load_acquire(&session->room_waiters) != 0) {
        futex_wake_all(&session->room_made);
    }
}

void write_events(Session* session, uint64_t first, uint32_t count) {
    const auto event = [session, first](size_t i) -> const EventRecord& {
        return session->ring.slot_of(first + i);
    };
    // In this order: a reader that meets an event has met all that the event refers to.
    bool written = write_facts(session) && write_code(session) && write_nodes(session);
    if (written) {
        ByteWriter out(session->file.scratch(), TraceFile::kScratch_bytes);
        written =
            encode_events(event,
                          count,
                          session->file.column_scratch(),
                          TraceFile::kColumnScratch_bytes,
                          &out) &&
            write_or_count(
                session,
                session->file.write_chunk(
                    ChunkType::kEvents, count, first, event(0).time_ns, out.data(), out.size()));
    }
    if (!written) {
        session->lost_write_failed += count;  // the host must not wait for a full disk
    }
}

// Waits for a claimed slot to be filled; false when it is given up.
bool wait_until_published(const Session* session, uint64_t sequence, uint64_t patience_ns) {
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    while (!session->ring.is_published(sequence)) {
        if (clock_ns(CLOCK_MONOTONIC) - begin >= patience_ns) {
            return false;
        }
        const uint32_t never = 0;
        futex_wait(&never, 0, kMillisecond_ns / 4);
    }
    return true;
}

// Behind the event that started recording again, for which numbers were set aside. The tail comes
// first: the host must not wait for what a large checkpoint takes.
void resume_writing(Session* session, uint64_t started) {
    const uint64_t last = started + session->ring.slot_of(started).size;
    session->writes = session->has_file || begin_file(session);
    if (session->writes) {
        write_modules(session);
        write_events(session, started, 1);
    }
    advance_tail(session, last);
    if (session->writes) {
        write_or_count(session, write_checkpoint(session));
        session->parts.out_of_memory = false;  // of the gap
    }
}

// Events that were followed go into the file, or nowhere while recording is stopped.
void pass_on(Session* session, uint64_t first, uint32_t count) {
    const uint64_t last = first + count - 1;
    const EventKind kind = session->ring.slot_of(last).kind;
    if (!session->writes) {
        if (kind == EventKind::kRecordingStarted) {
            resume_writing(session, last);
        } else {
            advance_tail(session, last);
        }
        return;
    }
    const uint64_t before_bytes = session->file.size_bytes();
    write_events(session, first, count);
    session->writes = kind != EventKind::kRecordingStopped;
    advance_tail(session, last);
    limit_part(session, session->file.size_bytes() - before_bytes);
}

// With the flush lock held.
void flush(Session* session, uint64_t unfinished_patience_ns, bool exact_losses) {
    const SignalTakenBack no_signal(SIGXFSZ);
    RingHeader* header = session->ring.header;
    const uint64_t last = load_acquire(&header->head);
    if (session->writes) {
        write_modules(session);
    }
    while (header->tail < last) {
        const uint64_t first = header->tail + 1;
        const uint32_t count = published_from(session, first, last);
        if (count != 0) {
            pass_on(session, first, follow_events(session, first, count));
        } else if (!wait_until_published(session, first, unfinished_patience_ns)) {
            ++session->lost_unfinished;
            advance_tail(session, first);
        }
    }
    add_loss_facts(session, exact_losses);
    if (session->has_file) {
        write_facts(session);
    }
    if (session->writes) {
        copy_after_out_of_memory(session);
    }
}

bool worth_flushing(const Session* session, uint64_t last_flush_ns) {
    const RingHeader* header = session->ring.header;
    return enough_waits(session) || load_relaxed(&session->room_waiters) != 0 ||
           (session->has_file &&
            load_acquire(&header->facts_bytes) != header->facts_bytes_written) ||
           clock_ns(CLOCK_MONOTONIC) - last_flush_ns >= kQuietInterval_ns;
}

void* drain_main(void* argument) {
    auto* session = static_cast<Session*>(argument);
    t_thread.inside_hook = true;
    t_thread.inside_recorder = true;
    prctl(PR_SET_NAME, "fragtrace", 0, 0, 0);
    uint64_t last_flush_ns = 0;
    for (;;) {
        const uint32_t wakes = load_acquire(&session->drain_wakes);
        measure_clock();
        serve_control(session);
        if (worth_flushing(session, last_flush_ns) && session->flush_lock.lock_within(kSecond_ns)) {
            flush(session, kUnfinishedPatience_ns, false);
            if (session->ended && !session->file.has_index()) {
                session->file.write_index();  // chunks that came after the end have cut it off
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
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kDrainStack_bytes);
    pthread_t thread{};
    int error = pthread_create(&thread, &attributes, drain_main, session);
    if (error != 0) {
        // Large static TLS of the host's libraries may need a larger stack than ours.
        pthread_attr_setstacksize(&attributes, 8u << 20);
        error = pthread_create(&thread, &attributes, drain_main, session);
    }
    session->drain_runs = error == 0;
    if (session->drain_runs) {
        // The thread does it, too, but may not have run yet: nobody is to see it by another name.
        pthread_setname_np(thread, "fragtrace");
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
    if (!session->drain_runs) {
        return flush_now(session) ? session->ring.try_claim() : 0;
    }
    if (load_acquire(&session->fruitless_waits) >= kFruitlessWaits) {
        return 0;  // the drain hangs: waiting more would only slow the host down
    }
    const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    count_up(&session->room_waiters);
    wake_drain(session);
    uint64_t sequence = 0;
    for (;;) {
        const uint32_t made = load_acquire(&session->room_made);
        sequence = session->ring.try_claim();
        const uint64_t waited = clock_ns(CLOCK_MONOTONIC) - begin;
        if (sequence != 0) {
            break;
        }
        if (waited >= kRoomPatience_ns) {
            count_up(&session->fruitless_waits);
            break;
        }
        futex_wait(&session->room_made, made, kRoomPatience_ns - waited);
    }
    __atomic_fetch_sub(&session->room_waiters, 1, __ATOMIC_RELAXED);
    return sequence;
}

bool flush_now(Session* session) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    flush(session, kUnfinishedPatienceAtEnd_ns, true);
    session->flush_lock.unlock();
    return true;
}

bool start_writing(Session* session) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    bool marked = false;
    for (int i = 0; i < kTriesToStart && !marked; ++i) {
        flush(session, kUnfinishedPatienceAtEnd_ns, false);  // makes room, too
        marked = record_start(session, session->parts.live.event_count());
    }
    if (marked) {
        flush(session, kUnfinishedPatienceAtEnd_ns, false);
    }
    session->flush_lock.unlock();
    return marked && load_acquire(&session->state) == kRunning;
}

bool write_copy(Session* session, const char* why) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return false;
    }
    flush(session, kUnfinishedPatienceAtEnd_ns, true);
    const SignalTakenBack no_signal(SIGXFSZ);
    const bool written = session->has_file && copy_parts(session, why);
    session->flush_lock.unlock();
    return written;
}

bool write_tables(Session* session) {
    write_modules(session);
    return write_facts(session) && write_code(session) && write_nodes(session);
}

bool write_end(Session* session, EndReason reason) {
    EndRecord end{};
    end.time_ns = clock_ns(CLOCK_MONOTONIC) - session->start_monotonic_ns;
    end.reason = reason;
    return write_or_count(session,
                          session->file.write_chunk(ChunkType::kEnd, 1, 0, 0, &end, sizeof end));
}

void end_trace(Session* session, EndReason reason, bool last) {
    if (!session->flush_lock.lock_within(kFlushLockPatience_ns)) {
        return;
    }
    store_release(&session->finished, last ? kFinishedLast : kFinished);
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
}

}  // namespace fragtrace::preload
