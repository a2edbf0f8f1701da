#include "recorder/ranges.h"

#include "recorder/numbered_names.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fragtrace::preload {

uint32_t g_ranges_to_record;

namespace {

struct OpenRange {
    uint64_t id;      // 0: nested in its thread
    uint32_t thread;  // the thread that began it
    uint32_t number;  // number of the text; 0 = not recorded yet
    uint32_t domain;
    RangeKind kind;
    char text[107];  // cut here; the trace has the full text unless recording began later
};

constexpr uint32_t kFirstOpen = 256;
constexpr uint32_t kMostOpen = 16384;  // 2 MiB; a program may never end its ranges
constexpr uint64_t kPatience_ns = 50 * kMillisecond_ns;

OpenRange* g_open;  // in the order in which they began
uint32_t g_count;
uint32_t g_room;  // ranges that fit in g_open
uint64_t g_without_room;
uint64_t g_last_id;
Lock g_lock;

uint32_t this_thread() {
    if (t_thread.thread_id == 0) {
        t_thread.thread_id = static_cast<uint32_t>(syscall(SYS_gettid));
    }
    return t_thread.thread_id;
}

bool session_records() {
    const Session* session = running_session();
    return session != nullptr && load_relaxed(&session->stopped) == 0;
}

void record_range(EventKind what, RangeKind kind, uint64_t id, uint32_t number, uint32_t thread) {
    EventRecord event{};
    event.kind = what;
    event.address = id;
    event.size = number;
    event.extra = static_cast<uint64_t>(kind);
    event.stream = kStreamUnknown;
    event.device = kDeviceUnknown;
    event.thread = thread;
    record(event);
}

// Called before a range begins or ends: after a start of recording, the open ranges must be
// recorded first.
void record_ranges_of_before() {
    if (load_relaxed(&g_ranges_to_record) != 0 && session_records()) {
        record_open_ranges();
    }
}

void remove(uint32_t at) {
    --g_count;
    memmove(&g_open[at], &g_open[at + 1], (g_count - at) * sizeof g_open[0]);
}

// Returns whether g_open has room for another range. Another thread may fork at any point: the
// child must find a table with at least the room that it reads.
bool make_room() {
    if (g_count < g_room) {
        return true;
    }
    const uint32_t room = g_room == 0 ? kFirstOpen : 2 * g_room;
    auto* more =
        room > kMostOpen ? nullptr : static_cast<OpenRange*>(map_private(room * sizeof(OpenRange)));
    if (more == nullptr) {
        return false;
    }
    OpenRange* before = g_open;
    const uint32_t before_room = g_room;
    if (before != nullptr) {
        memcpy(more, before, g_count * sizeof *before);
    }
    store_release(&g_open, more);
    store_release(&g_room, room);
    unmap(before, before_room * sizeof *before);
    return true;
}

void open(RangeKind kind, uint32_t domain, uint64_t id, const char* text) {
    if (text == nullptr) {
        text = "";
    }
    const uint32_t thread = this_thread();
    const bool records = session_records();
    record_ranges_of_before();
    const uint32_t number = records ? text_number(text) : 0;
    bool has_room = false;
    if (g_lock.lock_within(kPatience_ns)) {
        has_room = make_room();
        if (!has_room && g_count != 0) {
            remove(0);  // the oldest: its thread has most likely ended
        }
        if (g_count < g_room) {
            OpenRange* range = &g_open[g_count++];
            range->id = id;
            range->thread = thread;
            range->number = number;
            range->domain = domain;
            range->kind = kind;
            Text(range->text, sizeof range->text).add(text);
        }
        g_lock.unlock();
    }
    if (!has_room) {
        count_up(&g_without_room);
    }
    if (records) {
        record_range(EventKind::kRangeBegin, kind, id, number, thread);
    }
}

// `is_it(range)` is called from the innermost range outwards.
template <typename IsIt>
void close(RangeKind kind, uint64_t id, IsIt is_it) {
    record_ranges_of_before();
    uint32_t number = 0;
    bool found = false;
    if (g_lock.lock_within(kPatience_ns)) {
        for (uint32_t at = g_count; at-- > 0 && !found;) {
            if (is_it(g_open[at])) {
                found = true;
                number = g_open[at].number;
                remove(at);
            }
        }
        g_lock.unlock();
    } else {
        count_up(&g_without_room);
    }
    // A range that did not begin in this recording has no end in it. But an end with an id is
    // recorded even if the range is unknown, because the id identifies the range.
    if (session_records() && (number != 0 || (id != 0 && !found))) {
        record_range(EventKind::kRangeEnd, kind, id, number, 0);
    }
}

}  // namespace

void begin_range(RangeKind kind, uint32_t domain, const char* text) {
    const SlowPath slow_path;
    open(kind, domain, 0, text);
}

void end_range(RangeKind kind, uint32_t domain) {
    const SlowPath slow_path;
    const uint32_t thread = this_thread();
    close(kind, 0, [=](const OpenRange& range) {
        return range.id == 0 && range.thread == thread && range.kind == kind &&
               range.domain == domain;
    });
}

uint64_t start_range(RangeKind kind, const char* text) {
    const SlowPath slow_path;
    const uint64_t id = __atomic_add_fetch(&g_last_id, 1, __ATOMIC_RELAXED);
    open(kind, 0, id, text);
    return id;
}

void stop_range(RangeKind kind, uint64_t id) {
    const SlowPath slow_path;
    if (id != 0) {
        close(kind, id, [=](const OpenRange& range) { return range.id == id; });
    }
}

void record_mark(RangeKind kind, const char* text) {
    const SlowPath slow_path;
    if (text != nullptr && session_records()) {
        record_range(EventKind::kMark, kind, 0, text_number(text), 0);
    }
}

void begin_ranges_again() {
    store_release(&g_ranges_to_record, 1u);
}

void record_open_ranges() {
    const SlowPath slow_path;
    // Does nothing in a signal handler that interrupted the recorder. The request is cleared before
    // the loop, because recording a range comes through here again.
    if (t_thread.inside_recorder ||
        __atomic_exchange_n(&g_ranges_to_record, 0u, __ATOMIC_ACQ_REL) == 0) {
        return;
    }
    if (!g_lock.lock_within(kPatience_ns)) {
        count_up(&g_without_room, uint64_t{load_relaxed(&g_count)});
        return;
    }
    for (uint32_t at = 0; at < g_count; ++at) {
        OpenRange* range = &g_open[at];
        if (range->number == 0) {
            range->number = text_number(range->text);
        }
        record_range(EventKind::kRangeBegin, range->kind, range->id, range->number, range->thread);
    }
    g_lock.unlock();
}

uint64_t ranges_without_room() {
    return load_relaxed(&g_without_room);
}

void forget_ranges_of_other_threads(uint32_t parent_thread) {
    g_lock.reset();
    const uint32_t thread = this_thread();
    uint32_t kept = 0;
    for (uint32_t at = 0; at < g_count; ++at) {
        if (g_open[at].thread == parent_thread) {
            g_open[kept] = g_open[at];
            g_open[kept++].thread = thread;
        }
    }
    g_count = kept;
    g_without_room = 0;
}

}  // namespace fragtrace::preload
