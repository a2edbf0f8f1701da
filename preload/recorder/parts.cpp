#include "recorder/parts.h"

#include <fragtrace/codec.h>

#include "recorder/flush.h"
#include "recorder/session.h"
#include "system/address_table.h"

#include <algorithm>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace fragtrace::preload {
namespace {

// A program that catches its out-of-memory errors may have them all the time.
constexpr uint64_t kCopyInterval_ns = 60 * kSecond_ns;
constexpr uint32_t kMostCopiesByItself = 8;
constexpr size_t kMaxPath_bytes = 4096;
constexpr uint64_t kFetchAhead = 8;  // events; about the latency of memory

// On failure, errno has the reason.
bool write_all(int fd, const void* data, size_t size_bytes) {
    const auto* from = static_cast<const char*>(data);
    while (size_bytes != 0) {
        const ssize_t written = write(fd, from, size_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            errno = written < 0 ? errno : ENOSPC;
            return false;
        }
        from += written;
        size_bytes -= static_cast<size_t>(written);
    }
    return true;
}

void part_path(const Session* session, uint32_t number, Text* path) {
    char what[24];
    session->file.name_of(Text(what, sizeof what).add("part").add_number(number).c_str(), path);
}

void remove_part(const Session* session, uint32_t number) {
    char name[kMaxPath_bytes];
    Text path(name, sizeof name);
    part_path(session, number, &path);
    unlink(name);
}

// ---- the checkpoint -----------------------------------------------------------------------------

EventRecord marker(const Session* session, EventKind kind, uint64_t sequence) {
    EventRecord event{};
    event.sequence = sequence;
    event.kind = kind;
    event.device = kDeviceUnknown;
    event.stream = kStreamUnknown;
    event.time_ns = clock_ns(CLOCK_MONOTONIC) - session->start_monotonic_ns;
    return event;
}

// How much of each table is in the file.
struct Written {
    uint32_t nodes;
    uint32_t code_bytes;
    uint32_t facts_bytes;
    ModuleVersion modules;
};

Written written_of(const Session* session) {
    const RingHeader* ring = session->ring.header;
    return {ring->nodes_written,
            ring->code_bytes_written,
            ring->facts_bytes_written,
            session->modules_written};
}

void set_written(Session* session, const Written& written) {
    RingHeader* ring = session->ring.header;
    ring->nodes_written = written.nodes;
    ring->code_bytes_written = written.code_bytes;
    ring->facts_bytes_written = written.facts_bytes;
    session->modules_written = written.modules;
}

}  // namespace

// The checkpoint's events get consecutive numbers that end at the tail. There are enough numbers:
// each of these events had one of the numbers before the tail, or a start of recording reserved
// them.
bool write_checkpoint(Session* session) {
    session->parts.live.drop_overlapped();
    const uint64_t count = session->parts.live.event_count();
    const uint64_t last = session->ring.header->tail;
    const size_t size_bytes = (count + 2) * sizeof(EventRecord);
    auto* events = static_cast<EventRecord*>(map_private(size_bytes));
    if (events == nullptr) {
        return session->file.refuse(ENOMEM);
    }
    session->parts.live.copy_to(events + 1);
    events[0] = marker(session, EventKind::kCheckpointBegin, 0);
    events[count + 1] = marker(session, EventKind::kCheckpointEnd, 0);
    for (uint64_t i = 0; i < count + 2; ++i) {
        events[i].sequence = last - (count + 1) + i;
    }
    bool written = true;
    for (uint64_t first = 0; written && first < count + 2; first += TraceFile::kBatchEvents) {
        const uint64_t left = count + 2 - first;
        const auto batch =
            static_cast<uint32_t>(left < TraceFile::kBatchEvents ? left : TraceFile::kBatchEvents);
        const EventRecord* from = events + first;
        ByteWriter out(session->file.scratch(), TraceFile::kScratch_bytes);
        written =
            (may_grow(session) || session->file.refuse(EFBIG)) &&
            encode_events([from](size_t i) -> const EventRecord& { return from[i]; },
                          batch,
                          session->file.column_scratch(),
                          TraceFile::kColumnScratch_bytes,
                          &out) &&
            session->file.write_chunk(
                ChunkType::kEvents, batch, from->sequence, from->time_ns, out.data(), out.size());
    }
    unmap(events, size_bytes);
    return written;
}

void forget_what_is_written(Session* session) {
    set_written(session, {.nodes = 1, .code_bytes = 0, .facts_bytes = 0, .modules = {}});
}

namespace {

bool write_next_part(Session* session, uint32_t number) {
    Parts& parts = session->parts;
    if (!write_trace_header(session, number) || !write_tables(session)) {
        return false;
    }
    parts.checkpoint_begin = session->file.size_bytes();
    if (!write_checkpoint(session)) {
        return false;
    }
    parts.checkpoint_end = session->file.size_bytes();
    return session->file.keep_part();
}

// Turns a trace that has reached half of its limit into the first part.
bool begin_parts(Session* session) {
    session->header.part = 1;
    session->header.crc = header_crc(session->header);
    if (!session->file.become_part(session->header)) {
        session->header.part = 0;
        return false;
    }
    session->parts.number = 1;
    store_release(&session->ring.header->part, 1u);
    return true;
}

// The old part is ended first: if the process is killed before the new part has its name, the ring
// still says that it continues the old part.
void begin_next_part(Session* session) {
    Parts& parts = session->parts;
    if (parts.number > 1) {
        remove_part(session, parts.number - 1);
    }
    const uint64_t bytes = session->file.size_bytes();
    write_end(session, EndReason::kContinued);
    session->file.write_index();
    parts.before_bytes = bytes;
    const Written written = written_of(session);
    bool begun = session->file.begin_part(parts.number + 1);
    if (begun) {
        forget_what_is_written(session);
        begun = write_next_part(session, parts.number + 1);
    }
    if (!begun) {
        session->file.drop_part();
        set_written(session, written);
        count_up(&session->ring.header->trace_write_errors);
        parts.before_bytes = 0;
        parts.not_before_bytes = bytes + session->options.size_limit_bytes / 8;
        return;
    }
    parts.not_before_bytes = parts.checkpoint_end + session->options.size_limit_bytes / 8;
    ++parts.number;
    store_release(&session->ring.header->part, parts.number);
}

// ---- copies -------------------------------------------------------------------------------------
// On failure, errno has the reason.

bool copy_range(Session* session, int to, int from, uint64_t begin, uint64_t end) {
    uint8_t* buffer = session->file.scratch();
    while (begin < end) {
        const uint64_t left = end - begin;
        const size_t wanted = left < TraceFile::kScratch_bytes ? left : TraceFile::kScratch_bytes;
        const ssize_t got = pread(from, buffer, wanted, static_cast<off_t>(begin));
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return false;
        }
        // Other processes may use the space meanwhile, for example the copies of the other ranks.
        const auto size_bytes = static_cast<size_t>(got);
        if (!session->file.leaves_enough_free(to, size_bytes) ||
            !write_all(to, buffer, size_bytes)) {
            return false;
        }
        begin += static_cast<uint64_t>(got);
    }
    return true;
}

bool copy_file(Session* session, int to, const char* path, uint64_t begin, uint64_t end) {
    const int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const bool copied = from >= 0 && copy_range(session, to, from, begin, end);
    if (from >= 0) {
        close(from);
    }
    return copied;
}

bool copy_chunks(Session* session, int to) {
    const Parts& parts = session->parts;
    const char* path = session->file.path();
    const uint64_t end = session->file.size_bytes();
    if (parts.before_bytes == 0) {
        return copy_file(session, to, path, sizeof(TraceHeader), end);
    }
    // The tables are written twice, which readers accept; the checkpoint in the middle must be left
    // out.
    char name[kMaxPath_bytes];
    Text before(name, sizeof name);
    part_path(session, parts.number - 1, &before);
    return copy_file(session, to, name, sizeof(TraceHeader), parts.before_bytes) &&
           copy_file(session, to, path, sizeof(TraceHeader), parts.checkpoint_begin) &&
           copy_file(session, to, path, parts.checkpoint_end, end);
}

bool write_small_chunk(int to, ChunkType type, const void* payload, uint32_t size_bytes) {
    ChunkHeader header{};
    header.magic = kChunkMagic;
    header.type = type;
    header.stored_bytes = header.raw_bytes = size_bytes;
    header.count = 1;
    header.crc = chunk_crc(header, payload);
    const uint64_t padding = 0;
    return write_all(to, &header, sizeof header) && write_all(to, payload, size_bytes) &&
           write_all(to, &padding, (8 - size_bytes % 8) % 8);
}

bool write_copy_end(Session* session, int to, const char* why) {
    char fact[64];
    Text line(fact, sizeof fact);
    line.add("copy.reason\t").add(why).add("\n");
    EndRecord end{};
    end.time_ns = clock_ns(CLOCK_MONOTONIC) - session->start_monotonic_ns;
    end.reason = EndReason::kContinued;
    return write_small_chunk(to, ChunkType::kFacts, fact, static_cast<uint32_t>(line.size())) &&
           write_small_chunk(to, ChunkType::kEnd, &end, sizeof end);
}

uint64_t most_bytes_of_copy(const Session* session) {
    constexpr uint64_t kCopyEnd_bytes = 256;
    const Parts& parts = session->parts;
    const uint64_t bytes = session->file.size_bytes() + kCopyEnd_bytes;
    return parts.before_bytes == 0
               ? bytes
               : bytes + parts.before_bytes - (parts.checkpoint_end - parts.checkpoint_begin);
}

// Returns the open file, -1 if it could not be written: then nothing of it stays. `why` is nullptr
// at the end of the process: the chunks then already contain the end.
int join_parts(Session* session, const char* path, const char* why) {
    char name[kMaxPath_bytes];
    Text temporary(name, sizeof name);
    temporary.add(path).add(".tmp");
    if (temporary.full()) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink(name);
    const int to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0) {
        return -1;
    }
    TraceHeader header = session->header;
    header.part = 0;
    memset(header.ring_path, 0, sizeof header.ring_path);
    header.crc = header_crc(header);
    if (session->file.leaves_enough_free(to, most_bytes_of_copy(session)) &&
        write_all(to, &header, sizeof header) && copy_chunks(session, to) &&
        (why == nullptr || write_copy_end(session, to, why)) && rename_to_new(name, path)) {
        return to;
    }
    const int error = errno;
    close(to);
    unlink(name);
    errno = error;
    return -1;
}

bool copy_failed(Session* session) {
    session->parts.copy_error = errno;
    count_up(&session->ring.header->trace_write_errors);
    return false;
}

bool may_have_lost_frees(const Session* session) {
    const RingHeader* ring = session->ring.header;
    return (load_relaxed(&ring->lost_ring_full) | load_relaxed(&ring->lost_reentrant) |
            load_relaxed(&session->lost_before_start) | session->lost_unfinished |
            load_relaxed(&g_events_without_room)) != 0;
}

}  // namespace

bool start_parts(Session* session) {
    if (session->options.in_parts) {
        session->parts.number = 1;
        session->ring.header->part = 1;
    }
    return session->parts.live.create();
}

uint32_t update_live_table(Session* session, uint64_t first, uint32_t count) {
    Parts& parts = session->parts;
    const Ring& ring = session->ring;
    const uint64_t last = first + count - 1;
    if (may_have_lost_frees(session)) {
        parts.live.expect_lost_frees();
    }
    for (uint64_t sequence = first; sequence <= last; ++sequence) {
        const EventRecord& event = ring.slot_of(sequence);
        parts.live.fetch(ring.slot_of(std::min(sequence + kFetchAhead, last)),
                         ring.slot_of(std::min(sequence + 2 * kFetchAhead, last)));
        parts.live.apply(event);
        if (event.kind == EventKind::kRecordingStopped ||
            event.kind == EventKind::kRecordingStarted) [[unlikely]] {
            return static_cast<uint32_t>(sequence - first) + 1;
        }
        // A refused request of the framework's allocator is not an out-of-memory yet: the allocator
        // tries something else.
        parts.out_of_memory =
            parts.out_of_memory || event.kind == EventKind::kBlockOutOfMemory ||
            event.kind == EventKind::kCallOutOfMemory ||
            (event.kind == EventKind::kAllocRefused && (event.flags & kFlagFromAllocator) == 0);
    }
    return count;
}

void limit_part(Session* session, uint64_t chunk_bytes) {
    Parts& parts = session->parts;
    if (session->options.size_limit_bytes == 0) {
        return;
    }
    if (chunk_bytes > parts.largest_chunk_bytes) {
        parts.largest_chunk_bytes = chunk_bytes;
    }
    const uint64_t bytes = session->file.size_bytes();
    const uint64_t room_bytes = parts.largest_chunk_bytes * 2;
    if (session->ended || bytes + room_bytes < session->options.size_limit_bytes / 2 ||
        bytes < parts.not_before_bytes) {
        return;
    }
    if (parts.live.event_count() + 1 > session->ring.header->tail) {
        return;
    }
    if (parts.number != 0 || begin_parts(session)) {
        begin_next_part(session);
    } else {
        count_up(&session->ring.header->trace_write_errors);
        parts.not_before_bytes = bytes + session->options.size_limit_bytes / 8;
    }
}

bool may_grow(const Session* session) {
    const uint64_t limit_bytes = session->options.size_limit_bytes;
    return limit_bytes == 0 || session->file.size_bytes() + session->parts.before_bytes +
                                       session->parts.largest_chunk_bytes <
                                   limit_bytes;
}

bool make_room(Session* session) {
    Parts& parts = session->parts;
    if (!may_grow(session) && parts.before_bytes != 0) {
        remove_part(session, parts.number - 1);
        parts.before_bytes = 0;
    }
    return may_grow(session);
}

void copy_after_out_of_memory(Session* session) {
    Parts& parts = session->parts;
    if (!parts.out_of_memory) {
        return;
    }
    parts.out_of_memory = false;
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (session->options.flight && parts.copies_by_itself < kMostCopiesByItself &&
        (parts.copies_by_itself == 0 || now_ns - parts.last_copy_ns >= kCopyInterval_ns)) {
        ++parts.copies_by_itself;
        parts.last_copy_ns = now_ns;
        copy_parts(session, "oom");
    }
}

bool copy_parts(Session* session, const char* why) {
    Parts& parts = session->parts;
    char what[32];
    Text(what, sizeof what).add(why).add_number(++parts.copies);
    char name[kMaxPath_bytes];
    Text path(name, sizeof name);
    session->file.name_of(what, &path);
    const int copy = join_parts(session, name, why);
    if (copy < 0) {
        return copy_failed(session);
    }
    close(copy);
    return true;
}

void join_parts_at_end(Session* session) {
    Parts& parts = session->parts;
    if (parts.number == 0 || (parts.number > 1 && !session->options.flight)) {
        return;
    }
    char name[kMaxPath_bytes];
    Text path(name, sizeof name);
    session->file.name_of("", &path);
    if (path.full()) {
        return;
    }
    if (parts.number == 1) {
        session->file.rename_to(name);
    } else {
        const int joined = join_parts(session, name, nullptr);
        if (joined < 0) {
            copy_failed(session);
            return;
        }
        session->file.adopt(joined, name, static_cast<uint64_t>(lseek(joined, 0, SEEK_END)));
        remove_part(session, parts.number - 1);
        remove_part(session, parts.number);
    }
    parts.number = 0;
}

}  // namespace fragtrace::preload
