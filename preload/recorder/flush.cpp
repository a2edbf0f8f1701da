#include "recorder/flush.h"

#include <fragtrace/codec.h>

#include "recorder/drain_thread.h"
#include "recorder/session.h"
#include "recorder/trace_facts.h"
#include "stacks/stack_walk.h"

#include <time.h>

namespace fragtrace::preload {
namespace {

constexpr uint32_t kNodesPerChunk = 65536;
// Pause between attempts to create the file; it doubles after each failure.
constexpr uint64_t kFirstPause_ns = kSecond_ns;
constexpr uint64_t kLongestPause_ns = 60 * kSecond_ns;

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
        forget_unloaded_code();  // the C library unloads its own modules without dlclose()
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

// A node with a number but no content belongs to a thread between two stores. The current events
// cannot refer to it. But its number is smaller than theirs, and later events may refer to it.
void wait_until_filled(const StackNode* node) {
    constexpr int kYields = 100;
    constexpr int kTries = kYields + 400;
    for (int i = 0; i < kTries && load_acquire(&node->frame) == 0; ++i) {
        if (i < kYields) {
            yield_cpu();
        } else {  // the thread is not running: on a busy machine that can last some time slices
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

// Returns the number of published events from `first` on: at most one batch, none after `last`.
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
    store_relaxed(&session->room_made_ns, clock_ns(CLOCK_MONOTONIC));
    count_up(&session->room_made);
    if (load_acquire(&session->room_waiters) != 0) {
        futex_wake_all(&session->room_made);
    }
}

bool write_events(Session* session, uint64_t first, uint32_t count) {
    const auto event = [session, first](size_t i) -> const EventRecord& {
        return session->ring.slot_of(first + i);
    };
    if (!make_room(session)) {
        return write_or_count(session, session->file.refuse(EFBIG));
    }
    // The order matters: a reader that finds an event has already found all that the event refers
    // to.
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
    return written;
}

// If a write fails, events wait in the ring as long as half of it stays free: the error may pass,
// and the host must not wait for a full disk.
bool may_wait(const Session* session, bool at_end) {
    const RingHeader* header = session->ring.header;
    return !at_end && load_relaxed(&header->head) - header->tail <= header->slot_count / 2;
}

// Waits until a claimed slot is filled. Returns false if it is given up.
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

void complain(const Session* session) {
    char line[1024];
    say(Text(line, sizeof line)
            .add("fragtrace: no trace yet: ")
            .add(session->failure)
            .add("; tried again while the program runs\n"));
}

}  // namespace

bool make_file(Session* session, bool at_end) {
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (session->has_file) {
        return true;
    }
    if (!at_end && session->file_tried_ns != 0 &&
        now_ns - session->file_tried_ns < session->file_pause_ns) {
        return false;
    }
    session->has_file = begin_file(session);
    if (session->has_file) {
        session->file_tried_ns = session->file_pause_ns = 0;
        return true;
    }
    session->file_tried_ns = now_ns;
    if (session->file_pause_ns == 0) {
        session->file_pause_ns = kFirstPause_ns;
        if (!at_end) {
            complain(session);
        }
    } else if (session->file_pause_ns < kLongestPause_ns) {
        session->file_pause_ns *= 2;
    }
    return false;
}

namespace {

// Events without a file are lost at the end.
void give_up(Session* session, uint64_t last) {
    RingHeader* header = session->ring.header;
    if (header->tail < last) {
        count_up(&session->lost_before_start, last - header->tail);
        advance_tail(session, last);
    }
}

// Writes the start event and the checkpoint for which it reserved numbers. The tail advances before
// the checkpoint is written: the host must not wait for a large checkpoint.
bool resume_writing(Session* session, uint64_t started, bool at_end) {
    const uint64_t last = started + session->ring.slot_of(started).size;
    if (!make_file(session, at_end)) {
        if (at_end) {
            give_up(session, load_acquire(&session->ring.header->head));
        }
        return at_end;
    }
    write_modules(session);
    if (!write_events(session, started, 1) && may_wait(session, at_end)) {
        return false;
    }
    session->writes = true;
    advance_tail(session, last);
    write_or_count(session, write_checkpoint(session));
    session->parts.out_of_memory = false;  // an out-of-memory during the gap does not count
    return true;
}

// Writes events that the live table has seen, or discards them while recording is stopped. Returns
// false if they must wait.
bool pass_on(Session* session, uint64_t first, uint32_t count, bool at_end) {
    const uint64_t last = first + count - 1;
    const EventKind kind = session->ring.slot_of(last).kind;
    if (!session->writes) {
        if (kind == EventKind::kRecordingStarted) {
            return resume_writing(session, last, at_end);
        }
        advance_tail(session, last);
        return true;
    }
    const uint64_t before_bytes = session->file.size_bytes();
    if (!write_events(session, first, count)) {
        if (may_wait(session, at_end)) {
            return false;
        }
        session->lost_write_failed += count;
    }
    session->writes = kind != EventKind::kRecordingStopped;
    advance_tail(session, last);
    limit_part(session, session->file.size_bytes() - before_bytes);
    return true;
}

// The trace was removed or cut by somebody: its content is lost. The next file is not created at
// once, so that somebody who removes a folder finds it empty in the end.
void lose_file(Session* session) {
    constexpr uint64_t kPause_ns = 5 * kSecond_ns;
    session->lost_removed = session->ring.header->tail;
    session->file.abandon(false);
    session->has_file = false;
    session->wants_file = true;
    session->replaces_file = true;
    forget_what_is_written(session);
    session->file_tried_ns = clock_ns(CLOCK_MONOTONIC);
    session->file_pause_ns = kPause_ns;
}

// Starts the replacement file with all live allocations.
void begin_again(Session* session) {
    session->replaces_file = false;
    if (write_tables(session) &&
        session->parts.live.event_count() + 2 <= session->ring.header->tail) {
        write_or_count(session, write_checkpoint(session));
    }
}

void move_events(Session* session, uint64_t last, uint64_t patience_ns, bool at_end) {
    RingHeader* header = session->ring.header;
    while (header->tail < last) {
        const uint64_t first = header->tail + 1;
        uint32_t count = session->followed_count;
        if (count == 0) {
            count = published_from(session, first, last);
            if (count == 0) {
                if (!wait_until_published(session, first, patience_ns)) {
                    ++session->lost_unfinished;
                    advance_tail(session, first);
                }
                continue;
            }
            count = update_live_table(session, first, count);
        }
        session->followed_count = count;
        if (!pass_on(session, first, count, at_end)) {
            return;
        }
        session->followed_count = 0;
    }
}

}  // namespace

void flush(Session* session, uint64_t unfinished_patience_ns, bool at_end) {
    const SignalTakenBack no_signal(SIGXFSZ);
    const uint64_t last = load_acquire(&session->ring.header->head);
    if (session->writes && !session->ended && !session->file.is_whole()) {
        lose_file(session);
    }
    if (session->wants_file && !session->has_file) {
        session->writes = make_file(session, at_end);
        if (!session->writes) {
            if (at_end) {
                give_up(session, last);
            } else if (session->replaces_file && !may_wait(session, at_end)) {
                const uint64_t before = session->ring.header->tail;  // these events update the live
                                                                     // table but are not written
                move_events(session, last, unfinished_patience_ns, at_end);
                session->lost_removed += session->ring.header->tail - before;
            }
            return;
        }
        if (session->replaces_file) {
            begin_again(session);
        }
    }
    if (session->writes) {
        write_modules(session);
    }
    move_events(session, last, unfinished_patience_ns, at_end);
    add_loss_facts(session, at_end);
    if (session->has_file) {
        write_facts(session);
    }
    if (session->writes) {
        copy_after_out_of_memory(session);
    }
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

}  // namespace fragtrace::preload
